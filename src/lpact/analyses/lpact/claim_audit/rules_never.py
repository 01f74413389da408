"""Rules that find statements which no gate licenses. How a rule is written: see ``rules``."""

from __future__ import annotations

EQUIVALENCE = r"""
EQUIVALENCE: (same|identical|common|shared|equivalent|selfsame) ..3 MECH @needs both @unless {GEOMETRY_WORDS}
EQUIVALENCE: (share|shares|shared|sharing) ..6 MECH @needs both @unless {GEOMETRY_WORDS}
EQUIVALENCE: MECH ..8 (identical|equivalent|isomorphic|indistinguishable|interchangeable) @needs either
EQUIVALENCE: MECH ..8 (is|are) (one and)~ the same @needs either
EQUIVALENCE: (identical|equivalent|indistinguishable|isomorphic|reducible) (to|with|from) ..4 BRAIN
EQUIVALENCE: (two|both) (systems|kinds|networks) ..3 (are|is) ..3 (isomorphic|equivalent|identical|alike|one)
EQUIVALENCE: (equivalence|identity|isomorphism|sameness|interchangeability) ..2 (of|between|with) ..6 (BRAIN|
    MODEL)
EQUIVALENCE: (think|work|process|understand|comprehend|behave|read|learn|parse|represent|operate|function|
    listen|hear|speak|compute|encode|interpret|reason|predict|grasp|digest|handle|build|compose)(s|es|ing|ed|d)?
    ..6 (like|as) (the|a|an|any|human|do|does)~ AGENT @needs model @unless such as|as well as
EQUIVALENCE: (way|ways|manner|fashion) (that|as|in)~ (which)~ (the|a|an|human)~ AGENT @needs model
EQUIVALENCE: (way|manner|fashion) as ..4 AGENT @needs model
EQUIVALENCE: (just|exactly|precisely|much) (like|as) (the|a|an|human|our|any)~ AGENT @needs model
EQUIVALENCE: as (the|a|human|our)~ AGENT (do|does|did) @needs model
EQUIVALENCE: as (good|accurate|close|faithful|valid|real|well|competent) ..7 as (a|an|the|another|any|one|
    real)~ AGENT
EQUIVALENCE: as (good|accurate|close|faithful|valid|real|well) ..7 as (another|a second|one) ..2 BRAIN
EQUIVALENCE: (on par|on a par|no different|interchangeable|synonymous) (with|from) ..3 BRAIN
EQUIVALENCE: (computes?|does|do|compute|represents?|encodes?|learns?|knows?) what ..4 BRAIN
EQUIVALENCE: COPY ..3 BRAIN @unless across|in (?:\w+ )?(?:recordings|listeners|humans|people) @never-with
    {GEOMETRY_WORDS}
EQUIVALENCE: COPY ..4 (computations?|processing|operations?|mechanisms?|algorithms?|code|hierarchy) ..5 BRAIN
EQUIVALENCE: (replica|copy|twin|simulation|emulation|duplicate|double|clone|embodiment|implementation|
    fingerprint|portrait|image|readout|map) of ..5 BRAIN @needs model @never-with {TALK}
EQUIVALENCE: (stand-in|proxy|substitute|surrogate|replacement) for ..4 BRAIN @needs model @never-with {TALK}
EQUIVALENCE: (computations?|mechanisms?|representations?|operations?|codes?|states?) ..6 (are|is) (those|that)
    of ..3 BRAIN
EQUIVALENCE: (in silico|digital|synthetic|artificial|silicon) ..1 (brain|cortex|mind|listener|language (network|
    system|area)|temporal lobe|speaker|reader)
EQUIVALENCE: (converg|arriv|hit|stumbl|settl)\w* (on|upon|to|at|toward|towards|with) ..6 (BRAIN|same) @needs
    either
EQUIVALENCE: (rediscover|reinvent)\w* ..6 BRAIN @needs model
EQUIVALENCE: (correspond|map)\w* (one-to-one|directly|exactly|precisely) ..4 BRAIN
EQUIVALENCE: (mapping|correspondence) ..8 (is|are) one-to-one @needs either
EQUIVALENCE: (brain|cortex|mind) 's (own)~ ..1 (MECH|categories|vocabulary|dictionary|equal) @needs model
    @never-with {GEOMETRY_WORDS}|reliab\w+|responses?
EQUIVALENCE: (one-to-one|direct) (correspondence|mapping) ..8 BRAIN
EQUIVALENCE: (ones|those|features|what|quantity|quantities|variables|operations|algorithm|algorithms|
    computation|computations|mechanism|code|objective|principle|strategy|thing|format|scheme) (that|which|by which|
    with which|through which)~ (the|our|human)~ ..2 CORE ..1 COMPUTE @unless whether
EQUIVALENCE: CORE ..6 COMPUTE ..5 (transformers?|attention|self-attention|next-\w+|language model|backprop\w*|
    gradient|autoregress\w+|algorithm|predictive coding|surprisal|prediction) @unless recorded|responses? to|
    controls?|we|prediction of|used|using|do not
EQUIVALENCE: CORE ..3 COPULA ..4 (predictors?|prediction (engine|machine)s?|transformers?|language models?|
    llms?|neural networks?|next-\w+ \w+|autoregressive \w+|predictive machines?|prediction-machines?) @unless than|
    by|with|to
EQUIVALENCE: (brain|cortex|mind) (itself)~ (is|as) (a|an|the) ..2 (machine|engine|computer|predictor|
    transformer|llm)
EQUIVALENCE: (understand|comprehend|think)(s|ing)? (language|stories|speech|meaning|sentences|text|words|
    narratives) @needs model @never-with how|listeners|participants|cortex|brain|we|people|humans
EQUIVALENCE: BRAIN ..8 same ..5 as ..5 MODEL
EQUIVALENCE: MODEL ..3 ,~ (just|much|exactly)~ like ..2 ACTOR @unless models? like|networks? like
EQUIVALENCE: ACTOR ..2 ,~ (just|much|exactly)~ like ..3 MODEL
EQUIVALENCE: (becomes?|become|is|are) (a|another|the) (human )?(brain|cortex|mind) @never-with {METHOD}|{TALK}
EQUIVALENCE: (is|are|means?|implies|imply|equals?) (a|the|an)~ (shared|same|identical|common) ..1 (mechanisms?|
    computations?|codes?|algorithms?|process\w*|operations?)
EQUIVALENCE: MECH ..2 shared (with|by|between|across) @needs either
EQUIVALENCE: (MACHINE|it) (really|truly|genuinely|actually)~ (understands?|thinks?|comprehends?|knows?|feels?|
    grasps?)
EQUIVALENCE: (read|reads|reading) ..2 (minds?|thoughts?) @needs model
EQUIVALENCE: (way|ways|manner) (that|as|in which)~ (the|a)~ MODEL @needs brain @never-with compar\w+
EQUIVALENCE: (shared|common|same|identical) ..1 (mechanisms?|computations?|code|algorithms?) @noun
"""
"""Model and brain do the same, share a mechanism, or one reproduces the other."""

KINSHIP = r"""
EQUIVALENCE: (twins?|counterparts?|replica|incarnation|kin|cousins?|siblings?|alike|akin|mirror|mirrors|
    mirrored|image|doppelg\w+|blueprint|in silico|analog\w*|equivalen\w+|identical|interchangeabl\w+|isomorph\w+|
    indistinguishabl\w+|identically|one and the same|two sides of|embodi\w+|incarnat\w+|coincide|coincides|common
    to|shared by|
    shared between|in common) @needs both @never-with {TALK}|{GEOMETRY_WORDS}
EQUIVALENCE: same(?! (levels?|units?|rows?|gates?|data|runs?|order|stimul\w+|words?|procedure|events?|folds?|
    stor\w+|subjects?|sentences?|number|controls?|patterns?|readout|pipeline|analys\w+|recordings?|datasets?|
    scores?|extent|rules?|thresholds?|kind|time|as|way we|reason|criteri\w+|layers?|for|geometr\w+|relational|
    representational|profiles?|topograph\w+|similarity|relations?|window|lag|lags|features|models?|ordered|hash|
    response) ) @needs both @never-with {METHOD}
EQUIVALENCE: (one|single) (machine|algorithm|solution|system|code|mechanism|principle|computation|language|
    process|architecture) @needs both
EQUIVALENCE: (MECH|state|states|stages?|heads?|hidden states) ..6 (correspond|corresponds|map|maps|mapped) (to|
    onto) ..6 CORE @needs model
EQUIVALENCE: MODEL ..6 (correspond|corresponds|maps?) (to|onto) ..6 (CORE|stages?|areas?|regions?) @needs brain
    @unless mapping
EQUIVALENCE: (implemented|realised|realized|instantiated|embodied|performed|computed|carried out) (by|in|as)
    ..6 (BRAIN|transformer\S*) @needs both @unless voxels?|electrodes?|recordings?|sensors?
EQUIVALENCE: (share|shares|shared|sharing) @needs both @never-with {METHOD}|{GEOMETRY_WORDS}|noise|units|
    stimul\w+|varian\w+
EQUIVALENCE: (brain|brains|cortex|cortical|neural|human|humans|listeners|mind) ..6 is how ..8 @needs model
EQUIVALENCE: (is|are) how ..3 ACTOR
EQUIVALENCE: (level of|levels of|human-level|brain-level) ..3 (brain|human|humans|language understanding)
    @needs model @unless ceiling
"""
"""Words of kinship: said of model and brain together, they claim more than any gate measures."""

EXPLANATION = r"""
EXPLANATION: EXPLAIN ..3 (how|why|what) ..6 BRAIN @needs model @unless {VARIANCE}
EXPLANATION: EXPLAIN ..4 CORE @needs model @unless {VARIANCE}|shar\w+|relational|geometr\w+ @never-with
    controls?|nuisance\w*|shuffl\w+|autocorrelat\w+
EXPLANATION: BRAIN ..6 (explained|captured|accounted for) by ..7 MODEL @unless {VARIANCE} @never-with controls?|
    nuisance\w*
EXPLANATION: (mechanistic|biological|neurobiological|neurobiologically|process|algorithmic|complete|valid|
    unified|explanatory|neural|cognitive|causal|computational|working|genuine|true) ..1 (models?|theory|theories|
    accounts?|explanations?) (of|for) ..5 (BRAIN|language|speech|understanding|meaning) @unless language models?
    (?:of|for) language
EXPLANATION: (is|are|as|becomes?|become|constitutes?|offers?|offer|provides?|provide|deliver|delivers) (a|an|
    the|our|good|valid|first|best|faithful|true)~ ..2 (models?|theory|theories|accounts?|explanations?) of ..5
    BRAIN @needs both @never-with {TALK}
EXPLANATION: (question|problem|puzzle|mystery|debate|matter|riddle|secret|code) ..14 (settled|solved|resolved|
    answered|cracked|closed|over) @needs brain
EXPLANATION: (ends?|decides?|settles?|solves?|resolves?|closes|answers?|cracks?|settled|solved|resolved) ..2
    (question|problem|
    puzzle|mystery|debate|matter|riddle|neural code) ..14 BRAIN
EXPLANATION: (window|insight|key|direct access|royal road) (into|to|onto) ..4 CORE @needs model
"""
"""The model explains how the brain does it."""

CONCLUSION = r"""
EXPLANATION: (mechanisms?|algorithms?|code|principles?|process|processes|operations?|computations?|means|way|
    manner|rule|rules|strategy) (by|through|with|via|in|from|on|upon|according to) which ..2 ACTOR
EXPLANATION: CONCLUDE ..3 that (the|our|human|a)~ ACTOR ([^ ;:?]+ )*[^ ;:?]+ @unless {NUMBERS} @never-with
    {CHAIN}
EXPLANATION: CONCLUDE ..3 that ..6 (in|by) (the|our|human)~ ACTOR @unless {NUMBERS} @never-with {CHAIN}
EXPLANATION: CONCLUDE ..3 that ..14 ACTOR ([^ ;:?]+ )*[^ ;:?]+ @needs model @unless {NUMBERS}|align\w*
    @never-with {CHAIN}
EXPLANATION: CONCLUDE ..3 that ..4 (MODEL|MECH|NAMED) ..12 BRAIN @needs model @unless {NUMBERS}|align\w*
    @never-with {CHAIN}
EXPLANATION: (is|are|provides?|constitutes?|amounts? to|furnish\w*|offers?|yields?|deliver\w*) ..3 (evidence|
    proof|demonstration|confirmation) (for|of|that) ..8 (CORE|brain) @unless {NUMBERS}
EXPLANATION: (learn|see|understand|know|learned|understood|learnt|knows) (now)~ (how|why|what) ..2 ACTOR
EXPLANATION: (neural|cortical|brain|human) (computations?|processing|coding|inference|comprehension) ..6 (is|
    are) ..2 (autoregressive|predictive|generative|bayesian|transformer-like|attention-based|attentional|
    hierarchical)
EXPLANATION: (clos|bridg|fill)\w* ..2 gap between ..6 BRAIN
EXPLANATION: (prediction|predicting|correlation|fitting) ..4 (is|means|equals) ..1 (understanding|explanation|
    explaining)
EXPLANATION: mechanistic (insights?|understanding|explanations?|evidence|links?|level) @never-with {TALK}
EXPLANATION: (validat|vindicat|confirm|prov|establish)\w* ..4 (predictive (coding|processing)|(theory|theories|
    accounts?) of ..3 (brain|cortex|language|mind|cognition|comprehension))
EXPLANATION: NAMED ..3 (is|are) (computed|represented|encoded|processed|generated|implemented|integrated) (in|
    by|within) ..4 BRAIN
EXPLANATION: EXPLAIN ..2 (meg|eeg|ecog|fmri|bold) @needs model @unless {VARIANCE} @never-with controls?|
    nuisance\w*
EXPLANATION: (reveal|uncover|unlock|elucidat|demystif|crack|unveil|explain|captur|disclos)\w* ..3 (MECH|how|
    why) ..6 CORE @unless {VARIANCE} @never-with {TALK}
EXPLANATION: (tantamount|amounts?|equates?) to ..8 (CORE|brain) @unless {NUMBERS}
EXPLANATION: ACTOR ..1 must (be|have|use|rely|compute|implement|run|perform|depend|share|work|do|encode|
    represent|predict)
EXPLANATION: must (be|share|use|rely|compute|implement|reflect|have|resemble|work|depend) ..8 ACTOR @needs
    either @unless {NUMBERS}|interpreted|treated|read
EXPLANATION: (undoubtedly|unquestionably|indisputably|undeniably|clearly|evidently|obviously|certainly|
    definitively|conclusively) ..14 BRAIN @needs model @unless {NUMBERS}|align\w* @never-with {CHAIN}
EXPLANATION: (essence|secret|nature|origin|origins|core|foundation|foundations|basis|key|roots) of ..4 (BRAIN|
    language|speech|meaning|understanding) @needs model @unless data|neural basis of our
EXPLANATION: ACTOR ..2 (is|are|must be)? (constantly|always|continuously)~ predict(s|ing|ed)? (the|upcoming|
    next|words?)
UNIVERSAL_NEGATIVE: (language models|llms|transformers|machines|networks|ai) ..1 (will|can) (never|not ever)
    ..10 BRAIN
UNIVERSAL_NEGATIVE: (have|has|share|shares|are|is|had) ..2 (nothing (in common|to do|alike)|no (resemblance|
    relation|relationship|similarity)|unrelated|fundamentally (different|unlike)|categorically different|worlds
    apart|incommensurab\w+) @needs both @unless not
"""
"""Conclusions about how the brain works, from whatever was measured."""

NEVER = r"""
BRAIN_LIKE: (brain|human|cortex|mind|neuron|cortical)-?(like|likeness)
BRAIN_LIKE: (biologically|neurobiologically|neurally|cognitively|psychologically|neuroscientifically) ..2
    (plausible|realistic|valid|faithful|real|accurate|adequate|grounded|true)
BRAIN_LIKE: (closest|closer|nearer|nearest) to ..2 (brains?|cortex|humans?) @needs model
BRAIN_LIKE: (human|brain)-level @needs model
BRAIN_LIKE: (human|brain) (fashion|manner|way)s? @needs model
BRAIN_LIKE: (biological|neurobiological|psychological|neural|cognitive) (plausibility|realism|validity|reality|
    fidelity)
BRAIN_LIKE: (works?|functions?|operates?|behaves?|computes?|processes|thinks?) (much|just|a lot|very much|
    exactly|essentially)~ like (the|a|our|human)~ AGENT
HOMOLOGY: (homolog\w+|isomorph\w+|homomorph\w+|convergent evolution)
HOMOLOGY: (functional|direct|computational|artificial|neural|cortical|biological|exact|true) (analogues?|
    analogs?|counterparts?|equivalents?|homologues?) (of|to|in|for) ..6 (BRAIN|MODEL)
HOMOLOGY: (analogous|equivalent|akin) to ..4 CORE @needs model
HOMOLOGY: (evolv|invent|discover)\w* ..5 (twice|independently|in parallel) @needs either
CAUSATION: causal(?! (?:attention|language|mask\w*|statements?|claims?|interpretations?|conclusions?|
    convolution\w*|transformers?|
    models?|decoders?|reading|inference)) @needs both @never-with randomi[sz]ed|stimulation
CAUSATION: (causally|causal (roles?|effects?|links?|evidence|contributions?|influences?|relation\w*|relevance|
    dependence|power|tests?|machinery|status|necessity|proof)) @needs brain @never-with randomi[sz]ed
CAUSATION: (cause|causes|caused|causing) ..6 BRAIN @never-with common cause
CAUSATION: BRAIN ..5 (depends?|relies|rely|hinges?|requires?|needs?) (on|upon)~ ..5 (NAMED|MODEL|prediction|it|
    them) @unless prediction of|scores? of|model of
CAUSATION: (drives?|driving|generates?|produces?|governs?|underlies|underlie|shapes?|dictates?|gives? rise to)
    ..3 (CORE|comprehension|cortical \w+) @needs either @unless prediction of
CAUSATION: CORE ..4 (is|are) ..1 (driven|caused|generated|produced|governed|shaped) by ..5 (NAMED|MODEL)
CAUSATION: (necessary|required|essential|indispensable|responsible|crucial|needed) for ..4 (CORE|comprehension)
    @needs either @unless claims?|evidence
CAUSATION: (lesion|lesions|lesioned|lesioning|virtual lesion|knock-?out|silenc\w+) ..6 (BRAIN)
CAUSATION: (NAMED|syntax|meaning) ..2 (is|are) ..2 what ..5 CORE ..1 (COMPUTE|tracks?|needs?|cares?)
CAUSATION: ACTOR ..10 (can|could) not ..2 (do|work|function|understand|process|operate) ..3 without ..2 NAMED
CAUSATION: without ..2 NAMED ..3 ACTOR ..1 (can|could|would|will) not
CAUSATION: CORE ..3 derives? ..6 (MODEL|same|NAMED)
"""
"""Likeness, homology and causation."""

TOGETHER = r"""
EQUIVALENCE: (MACHINE( [^ ;:?()]+){0,14} (ACTOR|THOUGHT|neural \w+|cortical \w+|(meg|eeg|fmri|ecog|bold) (responses|
    activity))) @never-with {METHOD} @prose
EQUIVALENCE: ((ACTOR|THOUGHT|neural \w+|cortical \w+|(meg|eeg|fmri|ecog|bold) (responses|activity))( [^
    ;:?()]+){0,14}
    MACHINE) @never-with {METHOD} @prose
CAUSATION: NAMED( [^ ;:?()]+){0,10} (ORGAN|human \w+) @never-with {METHOD}|{RECORDED} @prose
CAUSATION: (ORGAN|human \w+)( [^ ;:?()]+){0,10} NAMED @never-with {METHOD}|{RECORDED} @prose
"""
"""The last resort: a model and a brain in one part of a sentence that reports no method and no number."""
