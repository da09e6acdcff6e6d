"""A framework's own loader whose batches still have to be made what the framework's step takes.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""


class Placed:
    """`images` with every batch handed through `place(images, labels)`."""

    def __init__(self, images, place):
        self.images, self.place = images, place

    def training(self, epoch, first=0):
        return (self.place(*batch) for batch in self.images.training(epoch, first))

    def evaluation(self):
        return (self.place(*batch) for batch in self.images.evaluation())
