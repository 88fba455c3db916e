#!/bin/sh
# Makes the passwords of compose.yaml in deploy/secrets, once: as root, since the processes of the image read them as
# user 10001. Then write a line `NAME HASH` for everyone who may enter into proxy_users (`caddy hash-password`).
set -eu
folder=$(dirname "$0")/secrets
umask 077
mkdir "$folder"
password=$(openssl rand -hex 32)
openssl rand -hex 32 > "$folder/database_owner"
echo "$password" > "$folder/database_password"
for name in dagster mlflow; do
    echo "postgresql://anon_pipeline:$password@database/$name" > "$folder/${name}_database"
done
touch "$folder/proxy_users"
# The folder is closed to others; in it, each container reads only what it was given.
chmod 644 "$folder/database_owner" "$folder/database_password"
chown 10001 "$folder/dagster_database" "$folder/mlflow_database"
