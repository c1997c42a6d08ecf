"""Nothing here is a test: the script is run by hand, before and after a renaming."""

collect_ignore_glob = ["*"]
