"""What every room uses: text for messages, files to read and write, waiting between threads."""
