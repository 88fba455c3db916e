"""One short script per tool, run in the tool's own environment: reads Parquet, anonymizes, writes Parquet and JSON."""
