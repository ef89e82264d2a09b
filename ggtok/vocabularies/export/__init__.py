"""llama.cpp's vocabularies in other libraries' formats: one module for each.

Each writer makes sure that its format can say what the vocabulary does, so that the other
library gives llama.cpp's ids; else it refuses and says why.
"""
