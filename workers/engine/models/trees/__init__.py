"""Decision trees: grown by scikit-learn, kept as arrays, and saved as a Keras model with built-in layers.

`growing` adds one **round** of trees in each epoch: one tree for each output, or one for all. Before that,
`categories` replaces category indices with means of the target, and with row weights `bins` replaces numbers.
`arrays` has a tree's nodes, and `build` makes the Keras model.
"""
