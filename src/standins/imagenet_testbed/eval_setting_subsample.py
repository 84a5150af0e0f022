"""ImageNet-testbed's fixed lists for the 50,000 images of val.

Its own tenth was drawn with repetition: of its 5,000 positions 4,799 are different. Here it is every tenth image of
each class. Put ImageNet-testbed's file beside a plug-in, or leave it there, to use its list.
"""

from testbed.eval_settings.imagenet import EIGHTH

_PER_CLASS = 50

class_sublist_1_8 = list(EIGHTH)
idx_subsample_list_50k_10percent = [
    label * _PER_CLASS + number for label in range(1000) for number in range(0, _PER_CLASS, 10)
]
