"""Why a step takes as long as it does: a profile taken apart by kernel class and by cause of idle time."""
