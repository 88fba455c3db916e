"""The page that tells people what a release is, in HTML, Markdown and pictures."""
