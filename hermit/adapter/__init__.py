"""What is trained: a directory of files under the rules of a template, and the tree of its versions."""
