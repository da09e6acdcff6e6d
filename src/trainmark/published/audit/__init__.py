"""Published reports and folders of logs, checked against themselves."""
