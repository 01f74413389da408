"""Simulated studies with known truth.

Words w = 1 … n of a Zipfian vocabulary of pseudo-words have latents, each standardised over the
words of its stimulus:

- l(w), *lexical*: a function of the word type alone;
- c(w) and e(w), *contextual* and *private*: independent of the word type, AR(1) with φ = 0.2;
- m_k(w), six *mechanisms*, uncorrelated with each other;
- n_i(w), three *nuisances*: word length, log frequency and position in the sentence;
- d(t), slow *drifts*: functions of the place in the story, with periods of one and two stories.

The response of unit j to a word, and its signal, are ::

    r_j(w) = snr · (g_rel_j c(w) + g_lex_j l(w) + g_pred_j e(w) + Σ_k g_kj m_k(w) + Σ_i g_ij n_i(w))
    y_j(t) = Σ_w r_j(w) h(t − onset_w) + snr · g_drift_j · d(t) + n_j(t) + s_j S(t) + i_j I(t)

with only the planted truths in it. For positive controls, ``onset`` adds the same ±0.5 snr to the
response to every word, and ``sound`` adds ±0.5 snr times the standardised envelope, 100 ms later, to
the signal; no model knows either. h peaks 200 ms after onset and has a mean of 1 over 100–300 ms;
for ``fmri`` it is a haemodynamic response. n_j is private AR(1) noise with a standard deviation of 1
*after* averaging over 200 ms (``fmri``: in one volume), so that gains are signal-to-noise ratios. S
is noise that units share, with its own gains. I is an intrinsic factor with i_j = g_rel_j where
the relational truth is *not* planted, else 0: the brain's own pattern over units is as strong as
ever, and no model knows it. ``meg`` mixes neighbouring sensors; ``epoched`` gives r_j(w) times the
mean of h over each window, with noise that is AR(1) over words.

Gains over units (`lpact.datasets.simulated.brain`): g_rel is spread from 0.1 to 1.6 and dominates the
brain's pattern; g_lex and the shared noise are unrelated to it; g_pred falls where g_rel rises, so
that a model which knows only e(w) predicts well and resembles nothing; mechanisms have units of
their own; gains of nuisances and drifts have any sign. What the models know is in `lpact.datasets.simulated.features`.

With ``text = "prose"`` the words are English stories (`lpact.datasets.simulated.prose`), and c, e and
m_k are functions of the text (`lpact.datasets.simulated.latents`): neither independent of the word type
nor, for the mechanisms, of each other.

Every number comes from a stream keyed by seed, dataset name and its own place: a recording can be
made without the others, in any order and process.
"""
