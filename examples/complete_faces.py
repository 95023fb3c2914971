"""Complete faces of unseen people: predict the lower half of an image from its upper half.

The label is an image of 32 x 64 pixels, treated as 2,048 numbers.  One kernel machine predicts all
of them, by a single linear system with 2,048 right-hand sides.  The figure shows two photographs
each of five people who are not among the 35 people of the training set.  The upper halves are
given; the tinted lower halves are the truth, the prediction, and the lower half of the person with
the most similar upper half.

Run::

    python examples/complete_faces.py

Data: ``olivetti_faces.npz`` (AT&T Laboratories Cambridge).  Takes about half a minute.
"""

import numpy as np
from _shared import data, picture_rows, save
from sklearn.neighbors import NearestNeighbors

from hilboost import OutputKernelBoostingRegressor

SIZE = 64
HALF = SIZE * SIZE // 2


def main() -> None:
    """Train on 35 people, complete the faces of five others, and draw the figure."""
    faces = data("olivetti_faces")
    images = faces["images"].reshape(-1, SIZE * SIZE) / 255.0
    person = faces["person"]
    unseen = person >= 35
    X, Y = images[~unseen, :HALF], images[~unseen, HALF:]
    X_test, Y_test = images[unseen, :HALF], images[unseen, HALF:]

    model = OutputKernelBoostingRegressor("linear", learner="kernel", random_state=0).fit(X, Y)
    neighbor = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(X_test)[1][:, 0]
    found = {"predicted": model.predict(X_test), "most similar\nupper half": Y[neighbor]}

    average = np.broadcast_to(Y.mean(axis=0), Y_test.shape)
    print(f"root mean squared error of a pixel in [0, 1], {len(X_test)} faces of unseen people:")
    for name, lower in {**found, "the mean face": average}.items():
        error = np.sqrt(((lower - Y_test) ** 2).mean())
        print(f"    {' '.join(name.split()):24} {error:.3f}")

    shown = np.arange(0, len(X_test), 5)  # ten photographs each person
    rows = {"truth": Y_test, **found}
    figure = picture_rows(
        {name: lower[shown] for name, lower in rows.items()},
        X_test[shown],
        (SIZE, SIZE),
        "Unseen people: the upper half is given, the tinted half predicted",
    )
    save(figure, "complete_faces")


if __name__ == "__main__":
    main()
