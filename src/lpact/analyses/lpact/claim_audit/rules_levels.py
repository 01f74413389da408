"""Rules that find statements which gates can license. How a rule is written: see ``rules``."""

from __future__ import annotations

PREDICTION = r"""
PREDICTION: (beat|beats|beating|outperform\w*|outscor\w*|exceed\w*|surpass\w*|surviv\w*|withst\w+|outlast\w*|
    resist\w*|overc\w+) ..6 CONTROL
PREDICTION: (beyond|above|over and above|better than|higher than|greater than|robust to|robust against|stands?
    up to|holds? up (to|against)|in excess of) ..5 CONTROL
PREDICTION: (can|could|did|do|does|is|are|was|were) not ..2 (be|been)~ (explained|explainable|accounted|
    attributed|attributable|reduced|reducible|due|ascribed|driven|an artefact|an artifact|a consequence|mimicked)
    ..2 (by|to|of|for) ..10 NUISANCE
PREDICTION: (improvement|gain|advantage|increment|margin|increase|edge) (over|above|beyond) ..5 CONTROL
PREDICTION: (no|none of the|neither|not one) ..3 CONTROL ..5 (reach|match|explain|account|beat|exceed|perform|
    rival|approach|came|could)\w*
PREDICTION: (predict|predicts|predicted|forecast|forecasts|encodes) ..7 BRAIN @needs model @unless whether
    @never-with {RAW}
PREDICTION: (robust|reliable|genuine|true|significant|strong) (predictive|prediction|correspondence|encoding|
    predictivity|association) ..5 BRAIN @needs either @never-with reliability|brain-brain
PREDICTION: correspondence ..8 (robust|genuine|real|proven|established)
PREDICTION: (unique|additional|extra|incremental) ..1 variance ..6 BRAIN @needs model
PREDICTION: (pass|passes|passed|clears?|cleared|meets?|met) ..3 predictive ..3 gates?
PREDICTION: predictive gate ..3 (passed|cleared|met|open)
PREDICTION: CONTROL ..2 (fails? to|failed to|not|unable to|never|leaves?|left) ..2 (explain|account|reach|match|
    reproduce|approach|beat|rival|come|intact|unscathed|untouched|standing|it|them|the effect)\w* @never-with gate
PREDICTION: (holds?|held|remains?|remained|persists?|persisted|stays?|stands?|endures?) ..6 (after|despite|
    against|under|whatever|beside) ..3 CONTROL @unless gates?
PREDICTION: (match|effects?|correspondence|similarity|relation|association|advantage|correlations?|predictions?|
    fit) ..4 (is|are) (real|genuine|robust|true|authentic|reliable)
PREDICTION: (holds?|remains?|persists?|stays?|stands?|endures?|survives?|is left) ..3 (when|once|after|even when|
    even if)
    ..4 CONTROL ..4 (taken|accounted|included|added|removed|regressed|considered|partialled) @unless gates?
PREDICTION: (neither|no|not) ..2 NUISANCE ..8 (can|could|does|do|is|are|will) ..3 (explain|account|produc|
    reproduc|mimic|
    responsible|enough|suffic)\w* @never-with gates?
PREDICTION: (leaves?|leaving|left) (all|every|the|its|each) ..2 CONTROL behind
PREDICTION: (superior|ahead|wins? out|triumphs?|prevails?|dominates?|eclipses?) (to|of|over)~ ..4 CONTROL
PREDICTION: (more|better|higher|greater|larger|stronger) ..3 than (those of|that of|the|for)~ (any|all|every|
    each) ..3
    CONTROL @unless similar|relational|profiles?
PREDICTION: (true|genuine|real|robust|veridical) ..2 (correspondence|association|relation)
PREDICTION: (retain|keep|kept|preserv|maintain|hold)\w* ..3 (advantage|gain|effect|lead|edge|margin|power|
    accuracy) ..3 (under|
    against|despite|over|with|in the face of|beyond) ..4 CONTROL
PREDICTION: (predict\w*|explain\w*|effects?|advantage|gains?|correlat\w+|associat\w+) ..7 (independently of|net
    of|after|even after|
    controlling for|accounting for|correcting for|adjusting for|irrespective of|regardless of) (all|every|the|our|
    severe|
    any|these) ..3 CONTROL @unless gates?|raw @never-with was added|were added|no longer|no better|fell|vanish\w*
PREDICTION: (neither|no) ..3 NUISANCE ..5 (explains?|accounts? for|produces?|reproduces?|mimics?|underlies)
    @never-with gates?
PREDICTION: owes? (nothing|little) to ..5 NUISANCE
PREDICTION: robust predictive (evidence|effects?|relations?) @noun
PREDICTION: NUISANCE ..6 (plays?|played|has|have|had) (no|little) (role|part|effect|influence|bearing)
PREDICTION: (free (of|from)|independent of|uncontaminated by|goes? beyond|rules? out|ruled out|ruling out) ..4
    (nuisances?|confounds?|drift|autocorrelation|artefacts?|artifacts?)
PREDICTION: (immune|impervious) to ..4 CONTROL
"""
"""Level 1, beyond controls."""

RELATIONAL = r"""
RELATIONAL: (COPY|match|matches|matched|recover\w*|preserv\w*|captur\w*|resembl\w*|inherit\w*|track\w*|
    reflect\w*|respect\w*) ..7 GEOMETRY @needs either
RELATIONAL: (has|have|adopts?|possess\w*|exhibits?|displays?) the (same)~ GEOMETRY ..2 of ..4 (MODEL|CORE) @needs
    both
RELATIONAL: GEOMETRY ..6 in ..2 agreement @needs either
RELATIONAL: GEOMETRY ..10 (inherited|retained|kept|echoed|reproduced|matched|mirrored|recovered|preserved|
    captured|shared|replicated|
    recapitulated) ..1 (by|in|between|across) @needs either
RELATIONAL: (shared|same|common|identical|matching|shares?|sharing) ..2 (geometr\w+|relational|representational|
    topograph\w+|similarity) @needs either
RELATIONAL: GEOMETRY ..6 (match\w*|mirror\w*|agree\w*|coincid\w*|exceed\w*|beat\w*|surpass\w*|parallel\w*|
    resembl\w*) ..6 (BRAIN|MODEL|CONTROL)
RELATIONAL: GEOMETRY ..4 (is|are|be) ..1 (shared|common|identical|the same)
RELATIONAL: (structurally|relationally|representationally|geometrically) ..1 (aligned|matched|similar|
    isomorphic)
RELATIONAL: (structural|relational|representational) alignment @noun
RELATIONAL: (is|are|was|as|one|two|three|remains?|yield\w*|find|found|qualif\w+|:) ..4 (relational candidates?|
    relational_candidates?)
RELATIONAL: (pass|passes|passed|clears?|cleared|meets?|met) ..3 relational ..3 gates?
RELATIONAL: relational gate ..3 (passed|cleared|met|open)
"""
"""Level 2."""

MECHANISM = r"""
MECHANISM: (selective|specific|mechanism-specific|targeted) ..2 (role|effect|drop|loss|deficit|dependence|
    contribution|impairment|reduction|decline|cost|involvement) @noun
MECHANISM: (selectively|specifically|exclusively) ..2 (reduc|lower|abolish|disrupt|degrad|impair|hurt|harm|
    decreas|affect|eliminat|destroy|depend|target|driv|support|contribut|account|explain|carr|underl|requir|need|
    necess|matter|weaken|erod|los|fall|drop|cost)\w*
MECHANISM: (is|are|as|was|be|identif\w*|prov\w+) ..2 the (very|actual|key|sole|true|driving|active|critical|
    specific|main|only|decisive|crucial)~
    (mechanisms?|ingredient|driver|engine|source|reason|factor|component|cause) (through|by|behind|that|which|
    underlying|
    of|via|why|for|in|responsible|at work|involved)
MECHANISM: (strip|remov|ablat|delet|project|eliminat)\w* ..14 (more than ..5 (non-matching|nonmatching|other|
    others|unmatched|mismatch\w*|random)|abolish\w*|only ..4 (matching|target))
MECHANISM: (reduc|lower|abolish|disrupt|degrad|impair|decreas|eliminat)\w* ..5 (selectively|specifically|
    exclusively)
MECHANISM: NAMED ..3 (is|are|be) ..1 the ..1 (mechanisms?|ingredients?|driver|engine|source|reason|key|cause)
MECHANISM: (strip|remov|ablat|delet|eliminat)\w* ..8 (only|uniquely|exclusively|specifically) ..4 (units?|
    targets?|electrodes?|scores?|predictions?|sensors?|responses?)
MECHANISM: (is|are|was|were) (driven|carried|mediated|explained|caused|produced) by ..2 NAMED @needs either
MECHANISM: (is|are|was) mechanism-specific
MECHANISM: owes? ..4 (predictions?|match|success|fit|advantage|alignment|scores?|power) to ..3 NAMED
MECHANISM: (mechanisms?|drivers?|source|reason|factor|cause|key|engine|origin) (behind|of|for|underlying|to) ..6
    (is|are) ..3 NAMED
MECHANISM: mechanism gates? ..3 (passed|cleared|met|open)
MECHANISM: mechanism-specific (relations?|dependence|effects?|match|correspondence|links?|role|fit) @noun
MECHANISM: NAMED ..2 (is|are) what (makes?|lets?|enables?|allows?|drives?|carries|explains?|underlies)
MECHANISM: (strip|remov|ablat|delet|eliminat|project)\w* ..10 (units?|targets?|electrodes?|scores?|sensors?)
    (only|alone)
MECHANISM: (establish|identif|confirm|reveal|singl|mark|pinpoint|show)\w* (out)~ ..1 NAMED (as|to be) ..4 (basis|
    source|driver|
    mechanism|cause|origin|key|engine|carrier|ingredient|root|reason|core)
MECHANISM: (is|are|was|were|proves?|turns? out) ..2 specific (to|for) ..3 NAMED
MECHANISM: (specifically|selectively|solely|uniquely|exclusively) (responsible|due|tied|linked|attributable|owed|
    needed)
MECHANISM: what (drives|carries|explains|underlies|produces|causes|supports|sustains|powers) ..6 (is|are) ..3 NAMED
MECHANISM: (comes?|stems?|arises?) from ..2 NAMED @needs either
MECHANISM: double dissociations? @noun
MECHANISM: (effects?|match|alignment|correspondence|prediction|predictions|score|scores|advantage|gain|fit|
    resemblance|
    similarity|success) ..8 (depends?|hinges?|rests?|due to|driven by|relies|attributable to|because of|carried by|
    stems? from|comes? from|mediated by|owed to) ..4 NAMED
MECHANISM: NAMED ..4 (drives?|carries|carry|explains?|accounts? for|underlies|underlie|mediates?|is responsible
    for|are responsible for|powers?) ..6 (match|alignment|correspondence|predictions?|scores?|fit|similarity|
    advantage|encoding|gain)
MECHANISM: (is|are|was|as|one|two|three|remains?|yield\w*|find|found|qualif\w+|:) ..4 (mechanism-specific
    candidates?|mechanism_specific_candidates?)
MECHANISM: mechanism-specific (alignment|evidence) @noun
MECHANISM: (pass|passes|passed|clears?|cleared|meets?|met) ..3 mechanism ..3 gates?
"""
"""Level 3."""

CEILING = r"""
CEILING: (reach|attain|approach|saturat|hit|achiev|exceed|touch|near|equal)\w* ..5 (ceiling|ceilings) @unless
    \d+|fraction|minimum|only
CEILING: (at|near|up to) ..5 (noise|brain-brain|reliability|human)~ (ceiling)
CEILING: (all|most|nearly all|[5-9]\d|100) %~ ..1 (of)~ ..3 (ceiling|explainable variance|explainable|reliable
    variance)
CEILING: (all|most|nearly|virtually|almost) ..3 (explainable|reliable|explicable) (variance|signal)
CEILING: ceiling ..4 (is|are|was|were|has been|have been) ..2 (reached|attained|saturated|hit|matched|met|
    exceeded)
CEILING: as (well|accurately|closely|reliably|good) as ..3 (another|other|a second|one|different) ..2
    (subjects?|listeners?|participants?|persons?|people)
CEILING: as (well|good|close|high|accurate) as ..4 (ceiling|ceilings|reliability|noise)
CEILING: (reach|attain|match|equal)\w* ..3 reliability @unless minimum|threshold
CEILING: ceiling gates? ..3 (passed|cleared|met|open)
CEILING: nothing ..3 (left|remains) ..3 explain\w*
CEILING: (limited|bounded) only by ..4 (noise|reliability|ceiling)
CEILING: (pass|passes|passed|passing) ..5 turing ..1
CEILING: (pass|passes|passed|clears?|cleared|meets?|met) ..3 ceiling ..3 gates? @unless , (?:and|but|while) the

"""
"""Level 4."""

ALIGNMENT = r"""
ALIGNMENT: (align|aligns|aligned|aligning) ..1 (with|to) ..6 BRAIN @needs either @never-with {TIMING}
ALIGNMENT: BRAIN ..4 (align|aligns|aligned) ..1 (with|to) ..6 MODEL
ALIGNMENT: (is|are|was|were|indeed|fully|truly|genuinely|become|becomes) ..2 aligned @needs both @unless
    structurally @never-with {TIMING}
ALIGNMENT: (brain|neural|model-brain|brain-model|human|cortical|brain-lm|brain-llm|neuro-ai|human-model)
    alignment @noun
ALIGNMENT: alignment ..2 (of|between|with|to) ..8 BRAIN @noun
ALIGNMENT: (genuine|true|robust|real|full|integrated|strong|undeniable|bona fide|complete) ..1 alignment @noun
    @needs either
ALIGNMENT: alignment ..10 (is|was|has|stands|are|follows?|emerges?) ..3 (confirmed|established|proven|
    demonstrated|shown|secured|real|genuine|complete|certain|fact|closed|significant|strong|high|achieved|found|
    from|directly)
ALIGNMENT: (prediction|predictions|predictivity|correlation|correlations|accuracy|scores?) (is|are|means?|
    equals?|implies|imply|establish\w*|constitut\w+) (brain )?alignment
ALIGNMENT: (match|matches|matched) ..3 (the|those of|that of)~ (human |language )*(brain|brains|cortex|cortical|
    neural|language network|temporal lobe) ..1 @needs model @unless {GEOMETRY_WORDS}|reliab\w+|controls?|units?|
    electrodes?
ALIGNMENT: in (tune|lockstep|register|harmony|step|sync) with ..4 BRAIN @needs model
ALIGNMENT: (brain|cortex|human|neural)-aligned
ALIGNMENT: MACHINE ..3 (is|are) ..2 aligned(?! (?:to|with)) @never-with {TIMING}
ALIGNMENT: (attuned|synchroni[sz]ed|coupled|tuned) (to|with) ..4 BRAIN @needs model @never-with {TIMING}
ALIGNMENT: (doubts?|scepticism|skepticism|reservations?) ..8 (put to rest|laid to rest|dispelled|removed|gone|
    refuted) @needs either
ALIGNMENT: (resembl|approximat)\w* ..3 CORE @needs model @unless {GEOMETRY_WORDS}|each other|one another|across
    @never-with controls?|chance
ALIGNMENT: (pass|passes|passed|passing|satisf\w+|met|meets?|clear|clears|cleared|fulfil\w*) ..2 (all|every|each|
    full|whole|alignment|integrated|six|four) ..4 (gates?|chain|levels?|tests?|criteria)
ALIGNMENT: (all|every|each) ..4 gates? ..3 (pass|passes|passed|met|cleared|open|satisfied|holds?)
ALIGNMENT: (is|are|was|as|one|two|three|remains?|yield\w*|find|found|qualif\w+|:) ..4 (integrated candidates?|
    integrated_candidates?)
ALIGNMENT: outcome (is|was)~ (a) (:|\.|,)?
"""
"""The whole chain."""
