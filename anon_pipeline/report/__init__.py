"""The reports on a release for people: pages in HTML and Markdown, with pictures."""
