"""Words of the two sides of a comparison, and of what may be said to relate them.

Each class is a list of regular expressions over normalised words (lower case, one space between words). A class
is named in capitals in the rules of ``families``. To teach the checker a new word, add it here.
"""

from __future__ import annotations

CLASSES: dict[str, tuple[str, ...]] = {
    # Model side: language models by kind and by name, and their parts.
    "MODEL": (
        r"(?:[\w-]+ )?(?<!language )(?<!brain )(?<!cortical )(?<!semantic )(?:networks?|nets?)",
        r"(?:language )?models?",
        r"llms?|lms?|plms?|dnns?|anns?|rnns?|lstms?|transformers?|transformer-\w+|chatbots?",
        r"(?:chat)?gpt\S*|\S*bert|\S*bert-\S+|llama\S*|mistral\S*|pythia\S*|opt-\S+|t5\S*|qwen\S*|gemma\S*|bloom\S*",
        r"xlnet|elmo|word2vec|glove|mamba\S*|falcon\S*|claude|gemini",
        r"(?:\S+ )?embeddings?|hidden states?|hidden layers?|layers?(?: \d+)?|activations?",
        r"self-attention|attention (?:heads?|layers?|mechanisms?)|attention",
        r"encoders?|decoders?|architectures?|features|vectors|weights|predictors?",
        r"ai|machines?|artificial (?:systems?|intelligence|minds?|agents?)|silicon|software|algorithms",
        r"next-(?:word|token) (?:prediction|predictors?)|autoregressi\w+|deep learning|representations?",
        r"artificial \w+|candidates?|computers?|machine learning|engineering|perceptrons?|parameters|"
        r"backprop\w*|gradient descent|ais",
    ),
    # Models that somebody could mistake for a mind.
    "MACHINE": (
        r"(?:[\w-]+ )?(?<!language )(?<!brain )(?<!cortical )(?<!semantic )networks?|(?:language )?models?",
        r"llms?|lms?|dnns?|anns?|transformers?|transformer-\w+|chatbots?|machines?|ai|artificial (?:systems?|"
        r"intelligence|networks?)",
        r"(?:chat)?gpt\S*|\S*bert|\S*bert-\S+|llama\S*|mistral\S*|pythia\S*|qwen\S*|gemma\S*|elmo|xlnet",
        r"(?:\S+ )?embeddings?|activations|hidden (?:states|layers)|layers?(?: \d+)?|attention(?: heads?| "
        r"layers?)?|self-attention|"
        r"next-(?:word|token) (?:prediction|predictors?)|deep learning|text prediction|autoregressi\w+|"
        r"engineering|computers?|gradient descent|backprop\w*|artificial neurons",
    ),
    # Brain side: organ, parts, methods that record it, and the people who own one.
    "BRAIN": (
        r"(?:human |language |listening |biological )*(?:brains?|cortex|cortices|minds?)",
        r"cortical\S*|subcortical|neocort\w+|neuron\w*|neurobiolog\w+|neurophysiolog\w+|biological\w*|biology",
        r"neural(?! (?:networks?|nets?|language models?|models?|architectures?))",
        r"(?:temporal|frontal|parietal|occipital|prefrontal) (?:lobes?|areas?|regions?|cortex|sites?)",
        r"gyrus|gyri|sulcus|stg|ifg|mtg|hippocamp\w*|broca|wernicke|perisylvian|auditory (?:cortex|areas?|system)",
        r"language (?:network|system|areas?|regions?|cortex|faculty|brain|circuits?)",
        r"humans?|people|listeners?|readers?|speakers?|comprehenders?|children|us|humanity|man",
        r"comprehension|(?:sentence|language|speech|syntactic|semantic) (?:processing|understanding|comprehension)",
        r"cogniti\w+|psycholog\w+|circuits?|circuitry|voxels?|electrodes?|sensors?|high-gamma|wetware",
        r"meg|eeg|fmri|ecog|ieeg|seeg|bold|intracranial|haemodynamic|hemodynamic",
        r"recordings?|recorded responses|temporal-lobe|inferior frontal|superior temporal|hemispheres?|"
        r"(?:ventral|dorsal|language) streams?|aphasi\w+|patients?|(?:temporal|frontal|parietal|auditory|cortical)"
        r"(?: and \w+)? (?:responses?|activity|signals?|gating|columns?|sites?|electrodes?)|living tissue|organ|"
        r"natural intelligence|thoughts?",
        r"neuro(?!science|ai|scientists?)\w+|n400|p600|erps?|evoked|synap\w+|dendrit\w+|gr[ea]y matter|"
        r"cerebr\w+|nervous|"
        r"your heads?|our heads?|the head|primates?|infants?|learners|our species|nature and|and nature|mental "
        r"\w+|inner speech|"
        r"memory|perception|consciousness|visual (?:cortex|system|areas)|v1|pathways?|cochlea\w*|thalam\w+|"
        r"brainstem|amygdala|cerebell\w+|white matter|reading|organism|flesh",
    ),
    # The part of the brain side that does something, as against a method that records it.
    "CORE": (
        r"(?:human |language |listening |biological )*(?:brains?|cortex|cortices|minds?)",
        r"cortical \w+|neurons|neuronal \w+|neural (?!networks?|nets?|language models?|models?)\w+|neurobiolog\w+",
        r"(?:temporal|frontal|parietal|occipital|prefrontal) (?:lobes?|areas?|regions?|cortex)|gyrus|gyri|stg|ifg",
        r"hippocamp\w*|broca|wernicke|auditory (?:cortex|areas?|system)",
        r"language (?:network|system|areas?|regions?|cortex|faculty|circuits?)",
        r"humans?|human \w+|people|listeners?|readers?|speakers?|comprehenders?|children|biological \w+",
        r"(?:sentence|language|speech) (?:processing|understanding|comprehension)|comprehension|cognition",
        r"natural intelligence|thoughts?|the mind|(?:the )?biology of \w+",
    ),
    # Who a model is compared with when it is said to do something "like" somebody.
    "AGENT": (
        r"(?:human |biological |real |living )*(?:brains?|cortex|minds?|listeners?|readers?|beings?|speakers?)",
        r"humans?|people|us|we|you|children|adults|person|man|language (?:network|system|areas?|regions?)",
        r"neurons|(?:temporal|frontal) (?:lobe|cortex|areas?)|participants?",
    ),
    # What would have to be the same for two systems to be the same.
    "MECH": (
        r"mechanisms?|computations?|computational \w+|principles?|codes?|algorithms?|operations?|process(?:es)?",
        r"strateg(?:y|ies)|circuits?|machinery|solutions?|functions?|logic|hierarch(?:y|ies)|quantit(?:y|ies)",
        r"representations?|formats?|architectures?|rules?|objectives?|inferences?|procedures?|routines?|currency",
        r"language|grammar|organi[sz]ing \w+|ways? of \w+|neural \w+|building blocks?|blueprint|recipe|things?",
        r"schemes?|coding|programs?|workings|tricks?|toolkits?|heuristics?|dynamics|transformations?|vocabulary|"
        r"concepts?|categories|laws?|"
        r"steps?|stages?|calculus|dimensions|axes",
    ),
    # Kinds of mechanism that a study strips; the names in a run's tables are added to these.
    "NAMED": (
        r"surprisal|semantic transitions?|dependency integration|syntactic boundar\w+|discourse boundar\w+",
        r"context updat\w+|syntax|semantics|syntactic \w+|semantic \w+|prediction errors?|next-word prediction",
        r"dependenc(?:y|ies)|discourse|composition(?:al\w*)?|context integration|predictive (?:coding|"
        r"processing)|phrase structure|word predictability|predictability",
    ),
    # What level 2 is about: how units relate to one another.
    "GEOMETRY": (
        r"relational|geometr(?:y|ies|ic|ical)|inter-\w+|topograph\w+|topolog\w+|rdms?|dissimilarit\w+",
        r"similarity (?:structure|pattern|matri\w+|profile|space)|patterns? of (?:similarit|correlation|relation)\w+",
        r"profiles?|relations? (?:among|between)|representational (?:space|structure|geometry|similarity)",
        r"(?:pairwise|unit-by-unit|region-by-region) \w+|covariance|connectivity",
    ),
    # What a conventional score is held against.
    "CONTROL": (r"controls?|nuisances?|baselines?|regressors?|surrogates?|confounds?|covariates?",),
    # Causes other than the model that a score can have.
    "NUISANCE": (
        r"timing|(?:word )?frequency|autocorrelat\w+|nuisances?|controls?|acoustic\w*|low-level|confounds?|drift\w*",
        r"word (?:rate|length|duration)|noise|chance|artefacts?|artifacts?|static|lexical|envelope|baselines?",
        r"shuffl\w+|position|length|motion|trivial|simple",
    ),
    # Likeness, in every part of speech.
    "LIKE": (
        r"same|identical\w*|alike|akin|counterparts?|twins?|mirror\w*|parallel\w*|indistinguishabl\w+|equivalen\w+",
        r"resembl\w+|duplicat\w*|analog\w*|interchangeabl\w+|isomorph\w+|homolog\w+|match(?:es|ed|ing)?|kinship",
        r"(?:just|exactly|much|precisely) (?:like|as)|(?:strikingly |deeply |very )?similar(?:ly|ity|ities)?(?: to)?",
        r"on a par|one and the same|coincid\w+|converg\w+|correspond\w* (?:to|with)|shar(?:e|es|ed|ing)|in common",
        r"unif(?:y|ies|ied)|equal(?:s|ed|led|ly)?|echo\w*|recapitulat\w*|reproduc\w*|replicat\w*|imitat\w*|mimic\w*",
        r"emulat\w*|instantiat\w*|embod\w*|copy|copies|copied|recreat\w*|re-creat\w*|rediscover\w*|reinvent\w*",
        r"simulat\w*|faithful\w*|no different from|inseparable",
    ),
    # Verbs of copying.
    "COPY": (
        r"(?:reproduc|recapitulat|replicat|mimic|emulat|simulat|instantiat|embod|duplicat|mirror|imitat|echo)\w*",
        r"retrac\w+|re-?enact\w*|reverse-engineer\w*|re-creat\w+|recreat\w+|clon\w+|copy|copies|copied|copying|"
        r"parallels?|paralleled",
    ),
    # Verbs of explaining.
    "EXPLAIN": (
        r"(?:explain|captur|reveal|uncover|elucidat|unlock|illuminat|demystif|crack|decod|expos|disclos|clarif|"
        r"pinpoint|"
        r"unravel|decipher|unveil)\w*|sheds? (?:\w+ )?light on|makes? sense of|spells? out|reverse-engineer\w*",
        r"account(?:s|ed|ing)? for|lay(?:s|ing)? bare|tells? us|give(?:s)? an account of|solv(?:e|es|ed|ing)",
    ),
    # Verbs of doing a computation.
    "COMPUTE": (
        r"(?:comput|implement|employ|perform|execut|exploit|represent|encod|adopt|instantiat|extract|operat|"
        r"calculat|deriv|obey|follow|deploy|utili[sz]|harness|leverag|"
        r"generat|construct|maintain|need|requir|favo)\w*",
        r"us(?:e|es|ed|ing)|runs?|running|appl(?:y|ies|ied)|carr(?:y|ies|ied) out|rel(?:y|ies|ied|ying) "
        r"(?:up)?on|does|do",
    ),
    # Verbs by which a text draws a conclusion.
    "CONCLUDE": (
        r"(?:prov|show|demonstrat|establish|confirm|reveal|conclud|infer|indicat|tell|settl|discover|"
        r"corroborat|certif|attest|testif|entail|compel|convinc|persuad|learn)\w*",
        r"impl(?:y|ies|ied|ying)|means?|meaning|meant|doubt|fact|clear|obvious|evident|say|state|find|found|"
        r"undeniable",
    ),
    # Brains and their owners as those who act.
    "ACTOR": (
        r"(?:human |language |listening |biological )*(?:brains?|cortex|minds?)|cortical (?:areas?|circuits?|"
        r"regions?|columns?|networks?)",
        r"(?:superior |inferior |middle |left |right |anterior |posterior )*(?:temporal|frontal|parietal|"
        r"prefrontal|auditory) (?:lobes?|areas?|regions?|cortex|gyrus)",
        r"language (?:network|system|areas?|regions?)|neurons|humans|people|listeners?|readers|speakers|"
        r"hippocampus|gyrus|circuits",
        r"human (?:brains?|minds?|thoughts?|cognition|language|comprehension|speech|understanding|intelligence)",
        r"(?:auditory|nervous|language) system|(?:language|human) faculty|language faculty|broca|wernicke|"
        r"patients?|(?:temporal|frontal|cortical) neurons|people",
    ),
    # What a mind has, as against an organ.
    "THOUGHT": (
        r"thoughts?|thinking|(?:natural|human|biological) (?:intelligence|understanding|experience|thinking|"
        r"reasoning)|"
        r"intelligence|consciousness|cognition|the mind|comprehension|understanding|experiences?|you|your",
    ),
    # Parts of a brain.
    "ORGAN": (
        r"n400|p600|mind|auditory pathways?|thalamus|brainstem|(?:human |semantic |working )memory|grey matter|"
        r"gray matter|cerebr\w+|neural (?:code|circuits?|tissue|mechanisms?|algorithms?|computations?|origins?|"
        r"locus|"
        r"machinery|basis|substrate)|(?:left|right) hemisphere|inferior frontal|superior temporal",
        r"(?:human |language |listening |biological )*(?:brains?|cortex|cortices|neocortex)|neurons|cortical "
        r"(?:areas?|"
        r"circuits?|regions?|columns?|processing|computations?|neurons)|(?:auditory|language|nervous) (?:system|"
        r"cortex|areas?)",
        r"(?:temporal|frontal|parietal|prefrontal|occipital) (?:lobes?|areas?|regions?|cortex|gyrus|neurons)|gyrus|"
        r"broca|wernicke|hippocampus|language network",
    ),
    # Verbs of being and becoming.
    "COPULA": (
        r"is|are|be|as|becomes?|became|turns? (?:out to be|into)|turned into|amounts? to|acts? as|functions? as|"
        r"works? as",
        r"(?:revealed|shown|found|proven|known|established|confirmed|exposed|seen) (?:as|to be)|emerges? as|"
        r"serves? as|operates? as|constitutes?|embod(?:y|ies)|represents?",
    ),
    # Verbs by which a text says that something was found.
    "SHOW": (
        r"(?:show|demonstrat|establish|confirm|prov|reveal|indicat|impl|support|exhibit|display|corroborat)\w*",
        r"(?:verif|vindicat|validat|achiev|attain|possess|emerg|reach|yield|provid|identif|uncover|obtain)\w*",
        r"find|finds|found|finding|observe[sd]?|means?|meant|evidence|there|conclude[sd]?|must|due to|"
        r"reflects?|attribut\w+|only (?:come|mean|reflect|arise|be|stem)|require no",
        r"shares?|has|have|enjoys?|clear\w*|undeniab\w+|evident\w*|robust\w*|strong\w*|sufficient|proof|"
        r"licen[sc]es?|justif\w+|call",
    ),
}
