"""Complete handwritten digits: predict the lower half of an image from its upper half.

The label is an image of 128 pixels with a Gaussian kernel between images.  A prediction is a point
of the kernel's feature space.  Its pre-image is either the nearest training image, or an arbitrary
image found by a fixed-point iteration that starts there.  The figure shows twelve random test
digits.  The upper halves are given; the tinted lower halves are the truth, the nearest training
half and the continuous pre-image.

Run::

    python examples/complete_digits.py

Data: ``usps.npz`` (USPS digits, 16 x 16 pixels), of which 1,500 are used for training.  Takes about
half a minute.
"""

import numpy as np
from _shared import data, picture_rows, save

from hilboost import OutputKernelBoostingRegressor
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput

N_TRAIN, N_SHOWN, HALF = 1_500, 12, 128


def main() -> None:
    """Fit the model, compare the two pre-images, and draw the figure."""
    rng = np.random.default_rng(0)
    digits = data("usps")
    train, test = digits["X_train"].astype(float), digits["X_test"].astype(float)
    train = train[rng.permutation(len(train))[:N_TRAIN]]
    X, Y = train[:, :HALF], train[:, HALF:]
    X_test, Y_test = test[:, :HALF], test[:, HALF:]

    # With a length scale of 7.07, halves of the same digit are similar and others are not.
    output = KernelOutput(Gaussian(7.0711))
    model = OutputKernelBoostingRegressor(output, learner="kernel", random_state=0)
    model.fit(X, Y)
    print(
        f"{N_TRAIN} halves are points of {model.predict_embedding(X_test[:1]).shape[1]} dimensions"
    )

    found = {}
    print(f"squared distance between true and predicted halves, {len(test)} test digits:")
    for way in ("nearest", "continuous"):
        model.set_params(decode=way)
        found[way] = model.predict(X_test)
        print(f"    {way:10} {model.preimage_loss(X_test, Y_test):.3f}   (0 to 2)")

    shown = rng.choice(len(test), N_SHOWN, replace=False)
    shown = shown[np.argsort(digits["y_test"][shown], kind="stable")]
    rows = {
        "truth": Y_test,
        "nearest\ntraining half": found["nearest"],
        "any image\n(continuous)": found["continuous"],
    }
    figure = picture_rows(
        {name: bright(lower[shown]) for name, lower in rows.items()},
        bright(X_test[shown]),
        (16, 16),
        "Test digits: the upper half is given, the tinted half predicted",
    )
    save(figure, "complete_digits")


def bright(pixels: np.ndarray) -> np.ndarray:
    """Convert pixels from [-1, 1], where 1 is ink, to [0, 1], where 1 is paper."""
    return (1 - pixels) / 2


if __name__ == "__main__":
    main()
