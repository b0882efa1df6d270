"""How much of the texts and lists of others a message shows."""

#: Most characters of a value that a message quotes.
LONGEST_QUOTE = 60
#: Most characters of the key or the value of a label that a message quotes.
LONGEST_LABEL_QUOTE = 100
#: Most things that a message names one by one; of the others it says how many there are.
MOST_NAMED = 3
