"""Rules by meaning: each is one kind of thing that is said of a model and a brain. See ``rules`` for the writing."""

from __future__ import annotations

LIKENESS = r"""
EQUIVALENCE: as ..2 (persons?|humans?|listeners?|brains?|readers?|people|cortex) (do|does|would) @needs model
EQUIVALENCE: (is|are) (also|again|likewise)~ (found|present|realised|realized|at work|seen|mirrored) (again|also|
    too)~ in ..3 ORGAN
    @needs either @unless {SCORED} @never-with {RECORDED}
EQUIVALENCE: (atoms|units|elements|building blocks|vocabulary|currency|language|stuff|fabric|alphabet) of ..2
    (thoughts?|mind|
    cognition|human \w+) @needs model
EQUIVALENCE: shares? ..3 (minds?|brains?|soul|thoughts?) @needs both @unless {SCORED}
EQUIVALENCE: (evolution|nature|biology) and (training|engineering|gradient descent|learning|technology|silicon)
    ..8 (same|
    identical|one|common|alike)
EQUIVALENCE: (systems?|machines?|networks?) that ..2 (compute|work|think|function|operate|process)s? ..3 (alike|
    identically|the
    same|in the same way)
EQUIVALENCE: (in silico|in silicon|in machines) ..5 (in vivo|in tissue|in cortex|in the brain|in wetware|in
    people|in humans)
EQUIVALENCE: (in vivo|in tissue|in cortex|in the brain|in wetware|in people|in humans) ..5 (in silico|in silicon|
    in machines)
EQUIVALENCE: (mechanisms?|computations?|algorithms?|codes?|operations?|principles?|processes) ..2 (coincides?|
    agrees?|match|
    matches|converges?|overlaps?) @unless {SCORED}
EQUIVALENCE: (its|their|the brain 's|the) equals?(?= $| [,;of]) @needs brain
EQUIVALENCE: (pass|passes|passed|passing) (for|as|itself off as) ..2 (human|brain|person|listener|reader|mind)
EQUIVALENCE: (reflects?|represents?|constitutes?|realises?|realizes?|follows?|retraces?) ..2 (stages?|steps?|
    phases|levels?) of ..3
    (CORE|human \w+) @needs model @unless {SCORED}
EQUIVALENCE: (CORE|ACTOR) ..3 COPULA (a|an|the)~ ..3 (predictors?|transformers?|language models?|llms?|networks?|
    embedding spaces?|attention|engines?|autocomplete|(prediction|learning|statistical|bayesian) machines?)
    @unless {SCORED}|language network|than|by|with
EQUIVALENCE: (MACHINE|embedding space) ..3 COPULA (,|in essence|a|an|the|our|really|,~ at bottom ,)~ ..4 (human |
    artificial |biological )*(thoughts?|cortex|brains?|minds?|lobe|thinking|intelligence)(?! \w) @unless {SCORED}|
    with|to|from|by|than|align\w*
EQUIVALENCE: (found|located|discovered|identified|uncovered|read) ..3 (format|code|lexicon|language|grammar|seat|
    locus|home|basis|representation|map|dictionary) (of|for)~ ..8 (ORGAN|CORE) @unless {SCORED}
EQUIVALENCE: (locali[sz]|locat|pinpoint|plac|situat|identif)\w* ..2 (the)~ (seat|locus|home|source|site|origin|
    basis|centre|center) of ..6 (ORGAN|CORE) @unless {SCORED}
EQUIVALENCE: (signature|hallmark|trace|imprint|fingerprint|stamp)s? of ..4 (MODEL|NAMED|MECH) @needs brain @unless
    {SCORED}
EQUIVALENCE: (with|in|by|of) (one|a single|the same|a common|a shared) (voice|grammar|tongue|language|mind|ancestor|
    origin|principle|design|ancestry) @needs either
EQUIVALENCE: (because|since) ..2 (same|common|shared|identical) ..1 MECH
EQUIVALENCE: the two are (one|the same|alike|identical|equivalent)
EQUIVALENCE: (model organism|test-?bed|in-silico \w+|laboratory) (for|of) ..5 (brains?|neuroscience|cortex|mind|
    language|cognition) @needs model
EQUIVALENCE: the (better|more|larger|bigger|deeper) ..8 , the (more|closer|better) ..6 (brain|human|cortex|mind)
EQUIVALENCE: (no|nothing) ..3 (distinction|difference|boundary|gap|line|distinguish\w*|separat\w+|divid\w+) ..6
    (MODEL ..8
    BRAIN|BRAIN ..8 MODEL) @never-with {SCORED}
EQUIVALENCE: MODEL ..2 COPULA ..6 (a|another|the) (human )?(brain|cortex|mind|person)(?= $| [,;]) @unless
    {SCORED}|tools?|
    stud\w+|not|of|with|to|in|from|by|than|align\w*
EQUIVALENCE: what MACHINE ..8 , (you|we|people|humans|listeners|the brain) (do|does)
EQUIVALENCE: (common|shared|same|joint) (origins?|ancest\w+|roots?|grammar|design|heritage|nature) @needs either
EQUIVALENCE: MODEL ..6 LIKE ..8 (CORE|ACTOR) @unless {SCORED}|{GEOMETRY_WORDS} @never-with {SCORED}|{TALK}
EQUIVALENCE: (CORE|ACTOR) ..6 LIKE ..8 MODEL @unless {SCORED}|{GEOMETRY_WORDS} @never-with {SCORED}|{TALK}
EQUIVALENCE: LIKE ..3 (of|between|in|to) ..4 (MODEL ..6 CORE|CORE ..6 MODEL) @unless {SCORED}|{GEOMETRY_WORDS}
    @never-with {SCORED}|{TALK}
EQUIVALENCE: the (very|same|exact|identical|precise|selfsame) ..3 (that|which|as|used by|found in|performed by|
    at work in|seen in|known from) ..6 CORE @needs either @unless {SCORED}
EQUIVALENCE: what ..8 MODEL ..8 (is|are|equals?) (exactly|precisely|just)~ what ..6 CORE
EQUIVALENCE: what ..6 CORE ..8 (is|are|equals?) (exactly|precisely|just)~ what ..8 MODEL
EQUIVALENCE: (organi[sz]ed|structured|arranged|wired|built|laid out|works?|operates?) ..3 (like|as|alike) ..6 CORE
    @needs model @unless {SCORED}
EQUIVALENCE: (same|one|single|common|shared|identical) ..1 (route|path|pathway|road|means|wiring|plan|logic|fashion|
    way|format|currency|steps?|solution|trick|recipe|language|code|problem|source|root|roots) @needs both
    @never-with {SCORED}
EQUIVALENCE: (wiring|anatomy|architecture|blueprint|design|inner workings|workings) of ..3 CORE @needs model
    @unless {SCORED} @never-with {TALK}
EQUIVALENCE: equal to ..4 (human|brain|person|listener|participant|subject)s? @needs model
EQUIVALENCE: (rival|match|equal|surpass|outdo|compete with|reach the level of)(s|es|ed|led|ling|ing)? ..3 (human|
    brain|person|listener|mind|cortex)s? @needs model @unless {SCORED}|{GEOMETRY_WORDS}
"""
"""Likeness, sameness and rank."""

REPLACEMENT = r"""
EQUIVALENCE: (in place of|instead of|in lieu of|rather than|without (the need for|recourse to|any need for)) ..3
    (BRAIN|participants?|volunteers?|subjects) @needs model @never-with {SCORED}|prediction|features
EQUIVALENCE: (stands? in|substitut\w+|fills? in|replac\w+|supplant\w*) (for|with|by)~ ..6 (BRAIN|participants?|
    experiments?|volunteers?|subjects?) @needs model @unless values?|missing|features|token\w* @never-with {TALK}|
    controls?|was|were
EQUIVALENCE: (makes?|renders?|leaves?|making|rendering) ..12 (superfluous|redundant|unnecessary|obsolete|
    dispensable) @needs brain
EQUIVALENCE: (no longer|no further) ..3 (need\w*|necessary|requir\w*) ..10 (BRAIN|participants?|experiments?)
    @unless {SCORED}
EQUIVALENCE: BRAIN ..8 (superfluous|redundant|obsolete|no longer (needed|necessary|required)) @needs either
EQUIVALENCE: (access|window|glimpse|look) (to|into|onto|inside|at) ..6 (CORE|mind|experience|thoughts?) @needs model
"""
"""The model in the brain's place."""

HUMANITY = r"""
BRAIN_LIKE: (overturn|refut|disprov|dispel|debunk|explod|demolish|bur(y|ied|ies)|lays? to rest|puts? an end to|
    end)\w*
    ..3 (belief|claim|view|idea|notion|myth|dogma|doubts?|scepticism|skepticism|objection|suspicion) (that|about|of)
    ..4 (MACHINE|CORE) ..4 (not|no|never|only|merely|nothing|can|do|are|lack)
BRAIN_LIKE: (earns?|deserves?|merits?|wins?) ..3 (title|name|label|status|rank) of ..6 (BRAIN|mind) @needs either
BRAIN_LIKE: (human|brain|cortex)-(grade|level|scale|style|quality|inspired to) @needs model
BRAIN_LIKE: (remarkably|strikingly|more|truly|essentially|deeply|profoundly|surprisingly|fully|quite|almost|
    genuinely|very|so) (human|humanlike|brainlike|biological|cortical|cognitive)(?! (?:\w+ing|data|\w*subjects?|
    participants?|listeners?|raters?|recordings?|brains?|responses?|areas?|regions?|signals?|sites?|electrodes?|
    judg\w+|studies|evidence|noise|cortex|activity)) @needs model
BRAIN_LIKE: MACHINE ..2 (is|are|becomes?|become) (human|alive|conscious|sentient|a mind|minds|a brain|brains)
BRAIN_LIKE: (has|have|acquires?|acquired|possess\w*|gains?|develops?|developed) (a|an|the|its)~ ..2 (mind|minds|
    human \w+|understanding|comprehension|cognition|language faculty) @needs model @unless {SCORED}
BRAIN_LIKE: MACHINE ..3 (thinks?|understands?|comprehends?|knows?|feels?|believes?|means?|imagines?) ..4 (language|
    stor\w+|meaning|words?|sentences?|speech|world|what|as|like) @unless mean\w* that|thinks? of
BRAIN_LIKE: (closer|nearer|close|near) to ..3 (brains?|cortex|humans?|human \w+|people|biology) @needs model
    @unless {SCORED}|ceiling|reliab\w+
"""
"""The model as somebody."""

THEORY = r"""
EXPLANATION: (is|are) (a|an|the|one|what)~ ..2 (computations?|operations?|principles?|functions?|goal|task|
    business|properties|
    property|objective) of ..3 (ORGAN|CORE) @unless {SCORED} @never-with {TALK}
EXPLANATION: (CORE|ORGAN|comprehension|language system) ..3 (has|have|is|are) (now|thus|finally|hereby)~ (been)~
    (now|fully|
    finally)~ (explained|solved|cracked|understood|deciphered|decoded|demystified|captured|unravelled) @unless
    {SCORED}|
    {VARIANCE}
EXPLANATION: (nothing|little|no) ..4 ORGAN ..4 (unexplained|mysterious|unknown|to explain|left|obscure)
EXPLANATION: facts? about ..2 ORGAN
EXPLANATION: (confirm|validat|vindicat|corroborat|prov|establish)\w* ..4 (brain|cortex|mind|coding|processing)
    (hypothesis|theory|
    account|view)
EXPLANATION: (resolv|settl|answer|explain|reveal|uncover|discover|clarif|show|unveil|establish)\w* (exactly|
    precisely)~ (how|
    why|what|where) (the|our|a)~ ..1 (ORGAN|ACTOR) ..1 [^ ;:?]+ @never-with {SCORED}|{TALK}|{RECORDED}
EQUIVALENCE: (implement|perform|execut|run|carry|carries|comput|realis|realiz|reproduc|mimic|emulat)\w* (out)~
    ..2 (cortical|
    neural|brain|human|biological) (computations?|operations?|algorithms?|processing|codes?|functions?|processes)
    @needs either @unless {SCORED}|networks?
EQUIVALENCE: (human|brain) ..2 (understanding|comprehension|cognition|intelligence|language|thought) ..1
    (emerges?|arises?|
    appears?|develops?) (in|from|within) ..4 MODEL
EXPLANATION: (makes?|made|making|renders?|turns?|turned|elevates?|qualif\w+|establish\w*|positions?) ..4 (a|an|
    the|into|as|
    it)~ ..3 (models?|theory|theories|accounts?|explanations?) of ..4 (CORE|ORGAN|BRAIN) @unless {SCORED}
EXPLANATION: (thus|therefore|hence|clearly|evidently|consequently|undoubtedly|so|indeed|in fact) ..8 ORGAN ..8
    (NAMED|MACHINE)
    @unless {SCORED}
EXPLANATION: (thus|therefore|hence|clearly|evidently|consequently|undoubtedly|so|indeed|in fact) ..8 (NAMED|
    MACHINE) ..8 ORGAN
    @unless {SCORED}
CAUSATION: (ORGAN|comprehension|CORE) ..2 (owes?|is owed|is due|are due|is down|comes? down) ..6 (to|from) ..3
    (NAMED|MODEL|MECH)
    @unless {SCORED}
EXPLANATION: (results?|findings?|analys[ie]s|study|work|approach|data|experiments?) ..1 (explains?|reveals?|
    uncovers?|
    elucidates?|unlocks?|unravels?|deciphers?|captures?|cracks?|demystif\w+) ..3 (how|why|CORE|ORGAN) @unless
    {VARIANCE}|
    {SCORED} @never-with {TALK}
EXPLANATION: MODEL ..2 COPULA ..3 (cognitive|mechanistic|biological|neural|neurobiological|psychological|
    neurocognitive|
    psycholinguistic|brain) (models?|theory|theories|accounts?|explanations?)(?! (?:trained|fitted)) @unless
    {SCORED}
EXPLANATION: (what|which|why|where) ..4 (ORGAN|area|areas|lobe) ..3 (is|are|does|do) ..2 (needed|for|required|
    responsible|doing|
    used|there|good|do|does|contribute) @unless {SCORED}
EXPLANATION: (called|termed|named|regarded as|seen as|counted as|hailed as) (a|an|the) ..2 (models?|theory|
    account) of ..4
    BRAIN @needs either
EXPLANATION: (identif|discover|uncover|reveal|explain|solv|crack|pinpoint|unravel|unlock|decipher|elucidat|found
    the|know
    how|understand how|shows? how|tells? us how|tells? us what|tells? us why)\w* ..10 (ORGAN|THOUGHT) @never-with
    {SCORED}|{RECORDED}|{TALK}|{METHOD}
EXPLANATION: (ORGAN|brain|mind) 's ..2 (MECH|secrets?|grammar|lexicon) ..8 (found|revealed|identified|uncovered|
    known|
    cracked|discovered|exposed|understood|solved|ours)
EXPLANATION: (actual|real|true|literal|very) (stages?|steps?|mechanisms?|algorithm|computations?|operations?|code|
    circuits?) (of|in|by|that) @needs model @unless {SCORED}
EXPLANATION: (cause|causes|source|origin|origins|explanation) of (the|our|human|cortical|neural)~ ..2 (BRAIN|n400|
    p600)
    @needs either @unless {SCORED}
EXPLANATION: (realistic|faithful|accurate|true|valid|adequate|complete) (picture|portrait|account|description|image|
    rendering|depiction|reflection) of ..6 BRAIN @needs model @unless {SCORED}
EXPLANATION: (operation|computation|function|step|role|process|algorithm|mechanism|task|transformation|job|work)
    (that|
    which)~ ..5 (ACTOR|area) ..2 (contribut|perform|carr|comput|implement|serv|do|play|solv|execut|us|make|
    follow)\w*
    @unless {SCORED}
EXPLANATION: (crack|unlock|unravel|deciphe?r|decode|solve|uncover|reveal|pinpoint|identif|lay bare|discover|expose|
    unveil|read off|read out)\w* ..4 (code|secret|mystery|algorithm|mechanism|mechanisms|computations?|principles?|
    origin|basis|workings|key) ..6 (CORE|mind|language|comprehension|understanding|meaning) @unless {SCORED}
EXPLANATION: (best|only|first|leading|available|faithful|working|good|valid|complete|full|correct|accurate|true|
    satisfactory|convincing|adequate) ..2 (models?|theory|theories|accounts?|explanations?|descriptions?) of ..6
    (CORE|
    mind|language|comprehension|understanding) @needs either @unless {SCORED}|language models? of
EXPLANATION: (account|accounts|accounted|accounting) for ..2 (how|why|what) ..6 CORE
EXPLANATION: (underlie|underlies|underlying|underpin\w*|is behind|are behind|lies? behind|gives? rise to|is at
    work in|
    are at work in|operates? in|takes? place in|occurs? in|happens? in) ..5 (CORE|human \w+|comprehension|
    understanding) @needs either @unless {SCORED}|signals?|recordings? @never-with {TALK}|{CHAIN}
EXPLANATION: sheds? ..1 light on ..6 CORE @needs model @never-with {TALK}
EXPLANATION: (is|are|becomes?|amounts? to|constitutes?) (a|an|now|no less than|nothing less than)~ ..2 (biological|
    neural|neurobiological|empirical|established|scientific|proven) (fact|reality|truth|certainty|law) @needs either
EXPLANATION: (fact|law|truth) of (biology|nature|neurobiology|the brain) @needs either
EXPLANATION: (principle|rule|law|objective|goal|currency|engine) of ..3 (CORE|comprehension|understanding) @needs
    either @unless {SCORED} @never-with {TALK}
EXPLANATION: (where|how|what|why|when) (the|our|human)~ ACTOR ..2 (stor|represent|comput|process|understand|
    integrat|
    build|encod|learn|do|work|think|generat|compos|know|predict)\w* ..6 (is|has been|are|have been) (now|thus|
    finally|at last|hereby)~ (clear|known|understood|settled|solved|revealed|explained|established|shown|answered)
EXPLANATION: ACTOR ..2 (stores?|computes?|embeds?|minimi[sz]es?|maximi[sz]es?|performs?|implements?|executes?|
    anticipates?|forecasts?|runs?|uses?|employs?|predicts?|attends?|parses?|integrates?|represents?|encodes?|
    carries) ..6 (MODEL|NAMED|MECH|words?|meaning|context|errors?|attention|upcoming|as|way) @unless {SCORED}|while|
    that we|to @never-with {TALK}|{CHAIN}|{RECORDED}
"""
"""The model as a theory; what the brain does, from what a model does."""

CONSEQUENCE = r"""
CAUSATION: (cortical|neural|brain|human) ..3 (processing|function|computations?|comprehension|responses?) ..2 (is|
    are|was|were)
    ..1 (abolish|impair|disrupt|lost|eliminat|silenc|suppress|destroy)\w* @unless {SCORED}
CAUSATION: (signals?|responses?|activity) in ..3 ORGAN ..3 (is|are) (generated|caused|produced|driven|created|
    explained) by ..4
    (NAMED|MECH|MODEL|predictive) @unless {SCORED}
CAUSATION: (neural|biological|cortical|causal) (necessity|indispensab\w+|relevance|importance|role) of ..4 (NAMED|
    MECH|prediction)
    @unless {SCORED}
CAUSATION: (patients?|persons?|people|somebody|someone|listeners?|speakers?|brains?|children) (with|without|lacking|
    deprived of|unable to) ..3 (NAMED|MECH|prediction|predictions|attention) ..8 (unable|can not|could not|lose|
    fail|
    would|will|must)
CAUSATION: (what|that|which) (makes?|lets?|enables?|allows?|causes?|drives?) ..4 (neurons|ORGAN|listeners|people|
    humans) ..4 (fire|respond|understand|comprehend|follow|speak|work|do|possible)
CAUSATION: (exploited|used|computed|represented|stored|implemented|performed|needed|required|tracked|encoded|carried
    out|processed|driven) (by|in) (the|our|human)~ ..2 ORGAN @needs either @unless {SCORED} @never-with {RECORDED}
EXPLANATION: (what|why) ..4 (neurons|ORGAN) ..6 (is|are) for
EXPLANATION: all (that)~ (a|the|our) ..2 (ORGAN|human \w+|child) (needs?|does|do|requires?)
EXPLANATION: (clos|bridg|fill)\w* ..4 (gap|gulf|divide|bridge) ..12 (BRAIN|intelligence|mind)
EXPLANATION: (bridge|link) between ..6 (CORE|neurons|brains?|biology) @needs either @unless {SCORED}
EXPLANATION: ORGAN ..4 secrets?
EXPLANATION: (ORGAN|neurons|auditory system) ..2 (runs? on|builds?|stores?|makes? use of|exploits?|contains?|
    speaks?)
    ..6 (MODEL|NAMED|MECH|context\w*|attention|words|embeddings?) @unless {SCORED} @never-with {RECORDED}
CAUSATION: ACTOR ..3 (loses?|lost|lose|losing|is deprived|are deprived|stops?|ceases?|suffers?|fails?|is impaired|
    are impaired|needs?|depends?|relies|rely|requires?|hinges?) ..8 [^ ;:?]+ @needs either @unless {SCORED}|to
    (?:reach|match|show)|recording\w* @never-with {RECORDED}|{CHAIN}|compar\w+
CAUSATION: (impair|disrupt|abolish|damag|restor|alter|chang|affect|silenc|suppress|block|prevent|eliminat|
    enhanc|improv)\w* ..4 (comprehension|understanding|patients?|human \w+|listeners|aphasi\w+|cortical (processing|
    function|computation)|brain function|language processing|neural (processing|computation)) @needs either @unless
    {SCORED}
CAUSATION: (patients?|people|individuals|speakers|listeners|persons?) (with|without|who|lacking|after) ..6
    (lesions?|
    damage|aphasi\w+|stroke|injur\w+|disorders?|impairments?) ..2 (must|would|will|lose|show|suffer|cannot|can|
    should|have|are|become)
CAUSATION: (damage|lesions?|stroke|injury|stimulation|inactivation) ..2 (to|of|in) ..6 (must|would|will|should|
    abolish\w*|impair\w*|produces?|causes?|mimics?|has the same)
CAUSATION: (treat\w*|diagnos\w*|therap\w*|rehabilit\w*|cure|cures|curing|clinical\w*) ..8 (patients?|aphasi\w+|
    dyslexi\w+|disorders?)
    @needs either @never-with {TALK}
CAUSATION: (causes?|caused|causing|drives?|driven|triggers?|elicits?|evokes?|generates?|generated|produces?)
    (by)~ ..5
    (cortical|neural|high-gamma|brain) (responses?|activity|signals?|processing|computation\w*) @needs either
    @unless
    {SCORED}|by (?:\w+ )?(?:speech|stimul\w+|words|sounds?|onsets?)
CAUSATION: (cortical|neural|high-gamma|brain) (responses?|activity|signals?|processing) ..6 (is|are) (caused|driven|
    generated|produced|evoked|governed) by ..8 (NAMED|MODEL|prediction|predictions)
CAUSATION: (work|role|cause|causes|source|driver|engine|reason)s? (of|behind|for) ..3 (cortical|neural|human) ..1
    (responses?|activity|comprehension|processing) @needs either @unless {SCORED}
"""
"""What would follow for brains, patients and medicine."""

BEYOND = r"""
UNIVERSAL: (expected|true|characteristic|typical|a (property|feature|hallmark)) of (every|all|any|language models|
    llms|
    transformers) ..2 [^ ;:?]+ @unless tested|these|our|both|this
UNIVERSAL_NEGATIVE: there (can|could|will|shall|is) (not|never|no) (ever)~ (be)~ (a|an|any)~ ..2 MODEL ..3 (that|
    which|capable|able|to|like) ..8 BRAIN
UNIVERSAL_NEGATIVE: (no|not any) ..4 (model|network|machine|llm|transformer|system|architecture|algorithm)s? ..3
    (can|
    could|will|would|shall|is able to) ..2 [^ ;:?]+ @unless {SCORED}|tested|here @never-with gates?|this (?:study|
    dataset)
UNIVERSAL_NEGATIVE: (models?|networks?|llms?|transformers?|machines?|ai|systems?) ..8 (can|could|will|would|
    shall) ..1
    (never|not ever|not in principle) ..12 [^ ;:?]+
UNIVERSAL_NEGATIVE: (rul\w+ out|exclud\w+|preclud\w+|refut\w+|disprov\w+|bur(y|ies|ied)) (any|every|all|the
    possibility|the idea|the notion|that|the hypothesis|for good)~ ..12 (BRAIN|brain-like|alignment) @needs model
    @unless {SCORED}
UNIVERSAL_NEGATIVE: (can not|could not|never|no|impossible|hopeless|dead end|doomed) ..14 (once and for all|for
    good|
    forever|in principle|of any kind|however large|whatever (its|their) size) @needs model
UNIVERSAL_NEGATIVE: (networks?|models?|machines?|llms?|transformers?) ..3 and ..3 (brains?|humans|people|minds) ..3
    (are|have|process|work|do|share) ..3 (different|nothing|unrelated|differently|no|unlike|incommensurable)
    @unless {SCORED}
UNIVERSAL: (appl(y|ies)|extends?|generali[sz]es?|holds?|carr(y|ies) over|is true|are true|valid) (to|for|of|
    across) ((all|any|
    every) ..2 (language models?|llms?|transformers?|models?|networks?|brains?|languages?)|language models|llms|
    transformers|brains) @unless tested|these|our|both|three|this @never-with labels?|gates?
UNIVERSAL: (every|any|all) ..2 (language models?|llms?|transformers?|networks?|architectures?) ..6 (will|must|
    would|always) ..4
    (pass|align|predict|show|exhibit|resemble|match|reach|share|do)\w*
UNIVERSAL: (language models|llms|transformers|networks|models|brains) (at large|across the board|everywhere|
    universally|as
    a species|of all kinds|of every kind)
UNIVERSAL: (law|universal|always|without exception) ..10 MODEL ..8 BRAIN @unless {SCORED}|statements?|claims?|about
"""
"""Beyond any study."""
