"""Numbers of a judge: AUC, accuracy at margin 0, expected calibration error; and the scale that calibrates margins."""
import re

import numpy as np


def auc(margins, truths):
    """Probability that a true row has a larger margin than a false one, ties half."""
    order = np.argsort(margins, kind='stable')
    _, inverse, counts = np.unique(margins[order], return_inverse=True, return_counts=True)
    ranks = np.empty(len(margins))
    ranks[order] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = truths.sum()
    return (ranks[truths == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(truths) - positive))


def accuracy(margins, truths):
    return ((margins > 0) == (truths == 1)).mean()


def calibration_error(margins, truths, bins=10):
    """Mean |confidence - accuracy| over equal bins of confidence, weighted by rows."""
    probability = 1 / (1 + np.exp(-np.clip(margins, -50, 50)))
    confidence = np.maximum(probability, 1 - probability)
    right = (margins > 0) == (truths == 1)
    bin_of = np.minimum(((confidence - .5) * 2 * bins).astype(int), bins - 1)
    return sum(abs(right[bin_of == k].mean() - confidence[bin_of == k].mean()) * (bin_of == k).mean()
               for k in range(bins) if (bin_of == k).any())


def best_scale(margins, truths):
    """The factor on the margins with the least logistic loss."""
    signed = np.where(truths == 1, margins, -margins)
    factors = np.geomspace(.1, 3, 120)
    losses = [np.logaddexp(0, -factor * signed).mean() for factor in factors]
    return float(factors[int(np.argmin(losses))])


def fitted(scores, truths, of=slice(None)):
    """Scores without a zero or a unit of their own, shifted and scaled to the least logistic loss on the rows `of`."""
    spread = scores.std() or 1
    scores = (scores - np.median(scores)) / spread
    signs = np.where(truths[of] == 1, -1, 1)
    losses = {(shift, scale): np.logaddexp(0, signs * scale * (scores[of] - shift)).mean()
              for shift in np.linspace(-2, 2, 21) for scale in np.geomspace(.05, 5, 21)}
    shift, scale = min(losses, key=losses.get)
    return scale * (scores - shift)


def summary(margins, truths):
    """(AUC, accuracy, calibration error) as text; AUC only where both answers occur."""
    both = 0 < truths.sum() < len(truths)
    shown = f'{auc(margins, truths):.3f}' if both else '  -  '
    return f'{shown}/{accuracy(margins, truths):.3f}/{calibration_error(margins, truths):.3f}'


def keyword_scores(rows):
    """A baseline without a model: how many content words of the question (and partner) occur in the text."""
    words = lambda text: {word[:5] for word in re.findall(r'[a-z]{4,}', text.lower())}
    scores = []
    for row in rows:
        asked = words(row['question']) | words(row.get('partner') or '')
        scores.append(len(asked & words(row['text'])))
    return np.array(scores, float)
