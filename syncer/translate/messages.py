"""How much of the texts and lists of others a message shows."""

#: Maximum number of characters of a value that a message quotes.
LONGEST_QUOTE = 60
#: Maximum number of characters of the key or the value of a label that a message quotes.
LONGEST_LABEL_QUOTE = 100
#: Maximum number of items that a message names one by one; of the others it gives the number.
MOST_NAMED = 3
#: The same where each item says something else, such as the field that is wrong.
MOST_LISTED = 10
