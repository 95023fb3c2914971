"""Sentences of the library, with the options of the command line in place of its arguments."""

import re

_OWN_OPTIONS = ("learning_rate", "loss", "n_estimators", "quantile", "random_state", "time_budget")
_PHRASES = {
    r"drop the (columns?), or convert": r"exclude the \1 with --ignore, or convert",
    r"drop the column unless": "exclude it with --ignore unless",
    r"pass X_val and y_val": "add --valid TABLE",
    r"set validation_fraction to a number": "pass --set validation_fraction=NUMBER",
    r"pass other rows as X_val": "pass other rows with --valid",
    r"list (it|them) in categorical_features": r"name \1 in --set categorical_features",
    r"\bsample_weight (?=is|are|sums|contains|must)": "--weights ",
    r"\boffset (?=is|must)": "--offset ",
}
_VERB = r"\b(set|Set|use|Use|pass|Pass|add|Add)"
_CHOICE = re.compile(rf"(?:{_VERB}|\b(or)) ([a-z]\w*)=('[^']*'|\[[^\]]*\]|[\w.-]*\w)")
_ROW = re.compile(r"\bin row (\d+)")
_NAME = re.compile(r"\bset ([a-z]+(?:_[a-z0-9]+)+)(?=[.,;:])")


def in_options(text: str) -> str:
    """Write the remedies of a sentence as options: ``set max_depth=4`` as ``--set max_depth=4``.

    Rows count from 1, as in the other sentences of the command line.
    """
    for phrase, ours in _PHRASES.items():
        text = re.sub(phrase, ours, text)
    text = _ROW.sub(lambda found: f"in data row {int(found[1]) + 1}", text)
    text = _CHOICE.sub(_as_option, text)
    return _NAME.sub(r"pass --set \1=VALUE", text)


def _as_option(found: re.Match[str]) -> str:
    """Write a parameter and its value as an option."""
    verb, conjunction, name, value = found.groups()
    start = conjunction or ("Pass" if verb[0].isupper() else "pass")
    value = {"None": "none", "True": "true", "False": "false"}.get(value, value.strip("'"))
    if name in _OWN_OPTIONS and value != "none":
        return f"{start} --{name.replace('_', '-')} {value}"
    return f"{start} --set {name}={value}"
