"""What the paper measured, and more: data sets, contenders, numbers and their comparison."""
