"""Where logs come from: files, folders, archives, streams; bounded and cleaned."""
