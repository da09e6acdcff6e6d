"""The forecast of sizes that were not run: plot and page."""
