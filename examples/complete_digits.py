"""Complete handwritten digits: the lower half of an image from its upper half.

The label is an image of 128 pixels, under a Gaussian kernel between images.  A prediction is a
point of the kernel's feature space, and its pre-image is either the nearest half among the
training images, or any image at all: a fixed point that starts there and climbs.  The picture has
twelve test digits drawn at random; upper halves are given, tinted lower halves are the truth, the
nearest training half, and the continuous pre-image.

Run::

    python examples/complete_digits.py

Data: ``usps.npz`` (USPS digits, 16 x 16 pixels), 1,500 digits to learn from.  About half a minute.
"""

import numpy as np
from _shared import data, picture_rows, save

from hilboost import OutputKernelBoostingRegressor
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput

N_LEARN, N_SHOWN, HALF = 1_500, 12, 128


def main() -> None:
    """Fit, compare the two pre-images, draw."""
    rng = np.random.default_rng(0)
    digits = data("usps")
    train, test = digits["X_train"].astype(float), digits["X_test"].astype(float)
    train = train[rng.permutation(len(train))[:N_LEARN]]
    X, Y = train[:, :HALF], train[:, HALF:]
    X_test, Y_test = test[:, :HALF], test[:, HALF:]

    # A length scale of 7.07 makes halves of the same digit alike, and of other digits hardly.
    output = KernelOutput(Gaussian(7.0711))
    model = OutputKernelBoostingRegressor(output, learner="kernel", random_state=0)
    model.fit(X, Y)
    print(
        f"{N_LEARN} halves are points of {model.predict_embedding(X_test[:1]).shape[1]} dimensions"
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
    """From [-1, 1], where 1 is ink, to [0, 1], where 1 is paper."""
    return (1 - pixels) / 2


if __name__ == "__main__":
    main()
