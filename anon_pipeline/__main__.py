"""`python -m anon_pipeline`: the commands, where the script `anon-pipeline` is not on the path."""

from anon_pipeline.cli import main

if __name__ == "__main__":  # worker processes import this file under another name
    main()
