-- Run once, when the server of compose.yaml is empty: a database each for the records of Dagster and of MLflow.
\set password `cat /run/secrets/database_password`
CREATE ROLE anon_pipeline LOGIN PASSWORD :'password';
CREATE DATABASE dagster OWNER anon_pipeline;
CREATE DATABASE mlflow OWNER anon_pipeline;
REVOKE CONNECT ON DATABASE dagster, mlflow FROM PUBLIC;
