"""Words that take a statement back, soften it, or hand it to somebody else; and words that only seem to.

All are regular expressions over normalised words; see ``scope`` for how far each reaches.
"""

from __future__ import annotations

# Turns of phrase that look like a negation or a hedge and assert all the more. They are blanked before negations and
# hedges are looked for.
EMPHATIC = (
    r"(?:any|every) (?:\w+ )?(?:language model|model|transformer|llm|network|brain)s? would",
    r"(?:as|like|what|another|any) (?:a |an |another |any |the |real |human )*(?:persons?|humans?|"
    r"listeners?|brains?|readers?|people|subjects?) "
    r"(?:would|could|might)",
    r"only (?:be )?(?:compatible|consistent|explicable|explained|conceivable) (?:with|by|as|if)",
    r"suggest\w* (?:beyond|without) (?:any |all )?(?:\w+ )?doubt|suggest\w* (?:conclusively|unambiguously|"
    r"unmistakably)",
    r"(?:ends?|settles?|closes?|resolves?|decides?|answers?) the (?:\w+ )?(?:debate|question|controversy|"
    r"dispute|issue)s? "
    r"(?:about |over |of |as to )?(?:whether|if|how)?",
    r"(?:confirm|validat|vindicat|corroborat|prov)\w* (?:[^ ;:?]+ ){1,4}?(?:hypothesis|conjecture|theory)",
    r"(?:is |are )?(?:possible only|only possible)|(?:no|nothing) (?:further |more |other )?(?:[^ ;:?]+ "
    r")?(?:is |are )?(?:needed|required) to",
    r"(?<!that )only (?:an? |the )(?:[^ ;:?]+ ){1,4}?(?:can|could|would|will)|to be expected (?:of|from)",
    r"if there (?:was|were|is|had been) (?:ever |still )?(?:any|a) (?:lingering |remaining )?doubts?",
    r"anything but|far from (?:superficial|accidental|trivial|coincidental|spurious|loose|arbitrary)|not superficial",
    r"(?:debate|question|issue|controversy|discussion|matter)s? (?:over |about |of |as to |on )?(?:whether|"
    r"if|how|why) (?:[^ ;:?]+ ){1,14}?"
    r"(?:is|has been|are|was) (?:now |thus |therefore |finally |hereby )*(?:over|settled|closed|answered|"
    r"resolved|decided)",
    r"(?<!before )(?<!until )(?<!whether )(?<!if )(?<!that )we (?:may|can|could) (?!not )(?:\w+ )?(?:say|state|"
    r"conclude|claim|infer|call|assert)",
    r"no reason (?:not to|to doubt|to (?:\w+ )?otherwise)",
    r"(?:selectively|specifically|causally|uniquely|absolutely|strictly|indeed) (?:required|needed|"
    r"necessary|essential) (?:for|to)",
    r"(?:may|can|could|might) (?:[^ ;:?]+ )?be (?:called|regarded|considered|treated|taken|seen|described|"
    r"counted) (?:[^ ;:?]+ ){0,12}?"
    r"without (?:any )?(?:qualification|reservation|hesitation|exaggeration|further ado)",
    r"too (?:great|close|strong|similar|good|striking|tight|large|systematic) to be (?:[^ ]+ "
    r")?(?:accident\w*|coinciden\w+|chance|"
    r"spurious|fortuitous|ignored|an? (?:accident|coincidence|artefact|artifact))",
    r"no (?:one|body|reader) (?:who (?:[^ ;:?]+ ){1,6}?)?(?:can |could |would |should |will )(?:[^ ]+ "
    r")?(?:doubts?|deny|dispute)",
    r"no (?:[^ ;:?]+ ){1,4}?(?:that|which) (?:[^ ;:?]+ ){1,5}?(?:do|does|can|could|is|are|did) not",
    r"no different|not (?:one|two) (?:thing|system)s?|cannot but|can not but|can not help",
    r"(?:overturn|refut|disprov|dispel|debunk|explod|demolish)\w* (?:[^ ;:?]+ ){0,3}?(?:belief|claim|view|"
    r"idea|notion|myth|dogma|"
    r"doubts?|scepticism|skepticism|objection|suspicion)s? (?:that|about|of) (?:[^ ;:?]+ ){0,8}?(?:not|no|"
    r"never|only|merely|nothing)",
    r"not (?:only|merely|just|simply|solely|least)",
    r"(?:is|are|was|be|been)? ?no longer (?:in doubt|in question|possible|open|a (?:mere )?hypothesis|a "
    r"conjecture|speculat\w+|controversial|debat\w+|disput\w+)",
    r"beyond (?:any |all |reasonable |serious |a )*(?:doubts?|dispute|question|controversy|debate)",
    r"(?:seems?|appears?) (?:to be )?(?:now )?(?:beyond|clear|obvious|evident|undeniable|certain|inescapable|"
    r"established|settled|safe|inevitable)",
    r"(?:can|could|will|should) (?:no longer|not|hardly|scarcely) (?:now |seriously |reasonably |any longer "
    r")*be (?:denied|doubted|disputed|questioned|contested|ignored|overlooked|in doubt|clearer)",
    r"(?:no|little|without|without a|without any|leaves? no|leaves? little) (?:room for |real |serious |"
    r"reasonable |shadow of a )*(?:doubts?|question|dispute|denying)",
    r"(?:no|not any|leaves? no) (?:other |plausible |real )*(?:alternatives?|escape|way around|explanation "
    r"other than|other explanation|other conclusion|option but|choice but)",
    r"(?:not|hardly|no|scarcely) (?:a |an |by |mere |just )*(?:coincidences?|accidents?|surpris\w+|chance|fluke)",
    r"unsurprisingly|no wonder|nothing (?:less|short|other|but)(?: than| of)?|no less than|none other than",
    r"(?:can|may|could) (?:now |therefore |thus |safely |rightly |fairly |justly |confidently )+(?:be "
    r")?(?:say|said|state|stated|conclude|concluded|claim|claimed|call|called|regard|regarded|consider|"
    r"considered|taken|assert|asserted)",
    r"(?:may|might|could) (?:as well )?be (?:regarded|considered|taken|treated|seen) as (?:\w+ )?(?:proven|"
    r"established|settled|fact|certain|demonstrated|confirmed)",
    r"it (?:would|could|will) be (?:hard|difficult|absurd|perverse|foolish|impossible) to (?:deny|doubt|"
    r"dispute|escape|argue otherwise)",
    r"(?:need|needs|must|should) no longer be|no need to|not (?:need|have) to",
    r"only (?:\w+ ){1,3}?(?:if|because|when)|goes without saying|needless to say|there is no denying|all "
    r"(?:that is needed|it takes)",
    r"(?:no one|nobody|no reader) (?:can |could |would |should |will )?(?:\w+ )?(?:doubts?|deny|denies|"
    r"disputes?|questions?)",
    r"if anything|if not more|whether or not one (?:likes|agrees)|like it or not",
    r"(?:can|could|would) (?:not|hardly|scarcely|never|only|barely) (?:[^ ;:?]+ ){0,8}?(?:unless|without|if|"
    r"otherwise)",
    r"not a mere|no mere|not an? (?:mere |simple |loose )*(?:analogy|metaphor|resemblance|parallel)|more "
    r"than (?:a |an )?"
    r"(?:mere |simple )*(?:analogy|metaphor)",
    r"(?:could|would) not have (?:been )?(?:predicted|matched|reached|obtained|aligned) .{0,40}?(?:unless|if|"
    r"without)",
    r"not (?:by|due to|because of|owing to) (?:chance|coincidence|accident|luck)",
    r"(?:hypothesis|conjecture|possibility|question|suspicion) (?:that .{0,120}? )?(?:is|has been|was|stands|"
    r"are|can now be considered) (?:now |thus |therefore |hereby |fully |clearly |finally |conclusively "
    r")*(?:confirmed|proven|established|vindicated|settled|verified|correct|true|answered)",
    r"(?:confirm|prov|establish|vindicat|verif|settl|corroborat)\w* (?:the |this |our |a |long-standing |old "
    r")*(?:hypothesis|conjecture|idea|claim|view|notion|thesis|theory|suspicion|possibility)",
    r"(?:no|not) (?:control|nuisance|baseline|confound)\w*",
    r"as (?:we |was |had |previously |initially )*(?:expected|predicted|hypothesi[sz]ed|assumed|suspected|"
    r"anticipated|conjectured)",
    r"strongly suggests?|strongly suggesting|compellingly suggest\w*|clearly suggest\w*|unambiguously suggest\w*",
    r"should not (?:come as a )?surpris\w+|not (?:in doubt|in question|in dispute)",
    r"(?:previously|once|long|hitherto) (?:thought|considered|believed|deemed) (?:to be )?(?:impossible|"
    r"unlikely|unique)",
)

# Negations that reach every statement after them in their part of the sentence.
NEGATIONS = (
    r"not|no|never|none|nor|neither|nothing|nowhere|hardly|scarcely|barely|nobody",
    r"(?:fail|fails|failed|failing|failure|failures|unable|inability|refus\w+|declin\w+|decline) to",
    r"zero (?:\w+ )?(?:rows?|claims?|layers?|models?|candidates?|units?)|0 of \d+",
    r"short of|little (?:evidence|support|reason|sign)",
    r"far from|by no means|in no way|at odds with|contrary to|argu\w+ against|speak\w* against",
    r"refrain\w* from|abstain\w* from|stop\w* short|caution\w* against|warn\w* against|advis\w+ against|"
    r"guard\w* against|resist\w*|avoid\w*|avoiding|beware",
    r"(?:poor|bad|weak|thin|flimsy|little|hardly an?|scant|slender) (?:reasons?|grounds?|basis|evidence|"
    r"arguments?|guides?|proof)|inconsistent with|"
    r"(?:false|incorrect|untrue|rash|unsafe|absurd|naive|careless|too far|reckless|unwise|unsound) to|wrong "
    r"to|mistake to|error to|premature to|misleading to|unwarranted|unjustified|unsupported|overstat\w+|"
    r"overinterpret\w*|overreach\w*|misread\w*|fallac\w+",
    r"insufficient|inadequate|too (?:weak|little|early|few)|not enough|forbid\w*|forbidden|prohibit\w*|"
    r"preclud\w+|undermin\w+",
    r"misconceptions?|myths?|illusions?|confusion|delusions?|silent (?:about|on|as to)|agnostic|neutral "
    r"(?:on|about|as to)|"
    r"leaves? (?:open|aside|untouched)|sets? aside|has no bearing|disagree\w*|we (?:\w+ )?(?:dispute|"
    r"question|doubt|challenge|contest|oppose|reject)|(?:different|distinct|far|differs?|removed) from|not "
    r"to be|dispel\w*|misrepresent\w*|mis-?interpret\w*|mis-?tak\w+|den(?:y|ies|ied)|disclaim\w*|dismiss\w*",
)

# Negations that reach what follows up to a verb of showing ("the absence of a difference shows that …").
LOCAL_NEGATIONS = (
    r"lacks?|lacked|lacking|lack of|absence of|absent|devoid of|contradict\w*|refut\w+|reject\w*|disprov\w+|"
    r"rul\w+ out|exclud\w+|failures?",
)
SHOWING = (
    r"(?:show|prov|demonstrat|establish|confirm|reveal|impl|mean|indicat|tell|make|leave)\w*"
    r"(?: us| it clear| clear| no doubt| little doubt)? that"
)

# Negations that reach only what follows at once.
SHORT_NEGATIONS = (
    r"rather than|instead of|without|as opposed to|with no|other than|in place of|non",
)

# What, said after a statement, takes it back.
AFTER = (
    r"(?:is|are|was|were|be|been|being|has|have|had|remains?|does|do|did|can|could|would|will) (?:\w+ "
    r")?(?:not|never|no|nowhere|hardly|neither|premature|unwarranted|unsupported|"
    r"unproven|untested|unknown|unclear|absent|lacking|insufficient|excluded|forbidden|wrong|misleading|"
    r"unjustified|open|(?:equally|likewise|just as|no less|therefore|thus|also|entirely|wholly) "
    r"(?:unsupported|unwarranted|unfounded|"
    r"unjustified|wrong|premature|misleading)|unfounded|inadmissible|an? (?:error|mistake|fallacy|"
    r"overstatement|exaggeration))",
    r"not (?:established|shown|demonstrated|claimed|supported|implied|tested|warranted|asserted|concluded|"
    r"assumed|licensed|inferred|proven|"
    r"confirmed|reached|passed|met|evaluated|observed|found|applicable|computed|assessed|detected|possible)",
    r"(?:unproven|unsupported|unestablished|forbidden|: (?:no|none|not|zero|absent|nil|un\w+)|(?:do|does|"
    r"did|need) not follow|"
    r"out of scope|not in scope|premature|rejected|absent|"
    r"failed|unknown|untested|ruled out)",
    r"(?:goes|go|going|reaches|reach) (?:far |well )?beyond|(?:in|for|by) (?:none|no|neither)|exceeds? what",
    r"(?:such|this|that|the) (?:an? )?(?:\w+ )?(?:attribution|claim|conclusion|reading|interpretation|wording|"
    r"inference|view|statement|leap|step|phrase|language) (?:would|is|was|has|goes|cannot|can not|must|should|"
    r"remains|does)",
    r"(?:is|are|was|were|be) (?:merely |only |just |largely |mostly |entirely |no more than )*(?:an? "
    r")?(?:artefacts?|artifacts?|illusions?|"
    r"by-products?|accidents?|mirages?|chimeras?|myths?|fictions?|spurious|false|untrue|incorrect|mistaken)|"
    r"without foundation|"
    r"(?:was|were|is|are|being) (?:\w+ ){0,2}?(?:negative|zero|nil|null|below zero|near zero|negligible)|"
    r"(?:is|are|was|were|remains?) (?:still |so far |entirely )?(?:lacking|missing|wanting|unavailable|scarce)|"
    r"disappear\w*|vanish\w*|collaps\w+|evaporat\w+|did not survive|fell (?:short|below)|no better",
)

# Words that say that something is possible, assumed, asked or planned.
HEDGES = (
    r"guess\w*|who knows|for others to|wishful\w*|at this stage",
    r"at best|at most|superficial\w*|loosely|metaphor\w*|figure of speech|await\w*|pending|elusive|"
    r"intriguing|room for|open to|prospect\w*|"
    r"(?:can|could) not (?:yet )?be (?:ruled out|excluded|discounted)|only then|in (?:that|which) case|"
    r"until then|in some sense",
    r"(?:designed|intended|meant|hoped|planned|supposed) to|in an attempt to|with the aim of|(?:we|i) "
    r"(?:\w+ )?(?:try|tried|attempt|attempted|"
    r"hope|hoped|plan|planned|intend|intended|want|wanted|wish|wished) (?:to|that)|debate (?:about|over|on)|"
    r"continues to be debated",
    r"apparent|alleged|putative|purported|ostensible|seeming|reputed|presumed|suspect(?:ed|s)?|wonder\w*|"
    r"reason to (?:suspect|think|"
    r"believe)|to what (?:extent|degree)|let us (?:assume|suppose|imagine)|for the sake of",
    r"(?:thesis|chapter|paper|study|work|article|project|dissertation|section|analysis|experiment) (?:\w+ "
    r")?(?:investigates?|explores?|"
    r"examines?|addresses|considers|was designed|is designed|sets out|attempts|tries)",
    r"may|might|could|would|perhaps|possibly|possible|possibility|possibilities|potentially|presumably|conceivabl\w+",
    r"arguably|plausibly|plausible(?! (?:models?|accounts?|theor\w+|explanations?))|likely|unlikely|probably|"
    r"maybe|apparently|tentative\w*|preliminary|provisional\w*",
    r"suggest(?:s|ed|ing|ive)?|seem(?:s|ed|ingly)?|appear(?:s|ed)? (?:to|that|as)|hint\w*|in principle|in "
    r"theory|point(?:s|ing)? towards?",
    r"(?:consistent|compatible|in line|in keeping) with (?!(?:previous|prior|earlier|past|recent|other|our|"
    r"citedauthor|many|several))\w+|invit\w+|raise\w* the",
    r"hypothes\w+|speculat\w+|conjectur\w+|suppos\w+|assum\w+|imagin\w+|we (?:believe|suspect|think|expect|"
    r"hope|wonder)|(?:be|is|are|was|were|been) expected",
    r"whether|if|unless|until|provided that|were (?:it|they|we|the)|should (?:it|they|the)|as if|as though|even if",
    r"unclear|unknown|unresolved|uncertain\w*|open question|remain(?:s)? (?:to be|open|an open)|yet to be|not "
    r"yet|remain(?:s)? untested|be seen",
    r"tempting|tempted|premature|inclined|one reading|one interpretation|some (?:evidence|indication)|further "
    r"(?:work|studies|research|experiments)",
    r"future (?:work|studies|research|experiments|datasets?|models?|recordings)|should (?:determine|test|"
    r"examine|ask|establish|investigate|clarify|address)",
    r"(?:we|i|study|paper|work|analysis|section|article|chapter|project) (?:\w+ )?(?:ask|asks|asked|aim|aims|"
    r"aimed|seek|seeks|sought|set out|propose|proposes)",
    r"(?:aim|aims|goal|goals|purpose|ambition) (?:of (?:this|our|the present|the current)|is|was|here)|"
    r"(?:objective|question|task|challenge) (?:(?:is|was) (?:to|whether|if|how)|here|remains|for)",
    r"to (?:test|ask|examine|investigate|determine|assess|decide|evaluate|find out) (?:whether|if|how|which)",
    r"to (?:understand|learn|see|know|explain|study) (?:how|what|why)",
    r"(?:need|needs|needed|require|requires|required|necessary) (?:to|before|in order|for (?:such|an?|any|"
    r"this|that|claims?|stronger|it))|before (?:one|we|"
    r"anyone|it) (?:can|could)",
    r"anyone 's guess|how (?:much|far)|to what extent",
    r"explanation (?:is|would be|could be|might be) that|one explanation|untested|attractive|appealing",
    r"(?:will|would|to|must|should|still) (?:require|need|demand|take|call for)|calls? for|(?:remains|left) "
    r"(?:to|for)",
    r"suppose|supposing|(?:is|are|would be) worth (?:testing|asking|examining)|a matter for|starting point|"
    r"lends? itself",
    r"in search of|search for|evidence that would|so-called|candidate (?:explanation|account)",
)

# "The claim that …" names a statement without making it, unless the text then affirms it.
MENTIONS = (
    r"(?:previous|prior|earlier|published|such|older|recent) (?:reports?|accounts?|descriptions?|"
    r"demonstrations?|claims?|findings?|"
    r"announcements?) (?:of|that|about)",
    r"(?<!our )(?<!my )(?<!main )(?<!central )(?:claim|slogan|dictum|view|motto|headline) (?:is|was|reads|runs)",
    r"(?:claim|claims|statement|statements|assertions?) to the effect (?:that|of)|(?:talk|mention|"
    r"suggestions?) (?:of|that)",
    r"(?:claim|claims|statement|statements|assertion|idea|notion|hypothesis|thesis|proposal|proposition|"
    r"suggestion|question|view|belief|intuition|slogan|assumption|"
    r"allegation|doctrine|dogma|position|rhetoric|hype|dream|vision|myth|hope|contention|impression|"
    r"prospect|speculation|"
    r"argument|narrative|story|temptation|reading|conjecture) (?:, )?(?:that|of|is that|as to|about|for|"
    r"like|such as)",
    r"(?:term|terms|word|words|wording|phrase|phrases|expression|expressions|label|headline|headlines|title|"
    r"titles|sentences|formulations?) (?:such as|like|as|of|for|that|are|is|were|was)",
    r"(?:criteri\w+|definition|gates?|threshold|requirements?|conditions?|tests?|"
    r"measures?|metrics?|standard) (?:here |\w+ly )?(?:of|for|that)|(?:defined|define|defines) (?:here |"
    r"\w+ly )?(?:as|by)",
    r"we use|we reserve|reserved?|we call (?:[^ ;:?]+ ){0,5}?(?:if|when|aligned)|we mean|refers to|denotes|"
    r"stands for",
)
AFFIRMED = (
    r"(?:confirm|establish|prov|support|vindicat|demonstrat|corroborat|validat|verif|settl|show|justif|"
    r"warrant|secur|clinch|seal)\w*|"
    r"no alternative|true|correct|fact|holds|we conclude|must be|beyond|is right|are right|licen[sc]\w+|now stands"
)

# A statement, negative or not, that the text does not make its own.
DISOWNED = (
    r"(?:not|no|never|nor|neither|nothing|hardly|without|refrain\w*) (?:[^ ;:?]+ ){0,5}?(?:claim\w*|"
    r"conclu\w+|say\w*|infer\w*|"
    r"impl\w+|mean\w*|show\w*|shown|prov\w+|establish\w*|suggest\w*|assert\w*|follow\w*|licen[sc]\w+|ground\w*|"
    r"reasons?|evidence|support\w*|warrant\w*|argu\w+|verdict|statement|demonstrat\w+|interpret\w*|read|"
    r"taken)|whether|"
    r"(?:wrong|premature|mistake|error|misleading|fallacy|rash) to"
)
# Grounds for a conclusion, and what a conclusion about brains is about.
GROUNDED = (
    r"as the|as all|since|because|it follows(?: that)?|follows that|therefore|thus|hence|consequently|"
    r"means? that|impl(?:y|ies) "
    r"that|shows? that|demonstrat\w+ that|prov\w+ that|given that|now that|having|establish\w* that"
)
CONSEQUENCE = (
    r"patients?|lesions?|damage|stroke|impair\w*|aphasi\w+|lose|loses|suffer\w*|injur\w+|stimulat\w+|silenc\w+|"
    r"inactivat\w+|disrupt\w*|abolish\w*"
)

# What a gate asks for is not what a study found.
REQUIRED = (
    r"must (?:also |not )?(?:beat|survive|exceed|pass|show|reach|hold|satisfy|reproduce|selectively|have|rise|"
    r"approach|replicate|be (?:above|"
    r"greater|supported|met|passed|positive|larger|at least))|requires?|required|needs? to|only if|asks? "
    r"(?:for|that|of)|has to|have to|is passed if|harder than|"
    r"rules? count|"
    r"in order to|so as to|to be (?:called|counted|labelled)"
)

# The scope of the study: a statement with one of these is not about all models.
BOUNDED = (
    r"(?:in|on|for|of|from|across) (?:this|these|our|the present|the current|the recorded|the tested|the "
    r"analy[sz]ed|both|the three|the two|the) (?:\w+ )?(?:study|studies|dataset|datasets|data|"
    r"sample|samples|recordings?|run|runs|analysis|analyses|subjects|participants|sessions?|layers?|experiments?)",
    r"(?:under|once|given|with|after|by|against) (?:the|these|our|its|this|all|every)? ?(?:\w+ )?(?:\w+ "
    r")?(?:gates?|controls?|criteria|assay|tests?|thresholds?|conditions?)",
    r"tested|examined|evaluated|studied|analy[sz]ed|considered here|here|gate-qualified|l-pact|in our|this "
    r"layer|this model|these models|these layers",
)
# The scope beyond any study.
UNIVERSAL = (
    r"(?:all|every|any|each)(?! other) (?:\w+ ){0,3}?(?:models?|llms?|transformers?|networks?|architectures?|brains?|"
    r"humans?|languages|listeners)",
    r"(?:models?|llms?|transformers?|networks?) (?:in general|of any kind|as such|generally|universally|"
    r"everywhere|always)",
    r"as a (?:class|kind|whole)|in general|universal\w*|regardless of|irrespective of|without exception|"
    r"invariably|always|whatever the|"
    r"no matter|once and for all|for good|law of",
    r"only (?:\w+ )?(?:models?|llms?|transformers?|networks?) (?:\w+ ){0,8}?can",
)
# Models as a kind: a plural without article or number.
GENERIC = (
    r"(?:(?:large|modern|contemporary|contextual|autoregressive|pretrained|pre-trained|deep|artificial|neural|"
    r"current|today 's|predictive|bigger|generative) )*"
    r"(?:language models|llms|transformers|neural networks|deep networks|contextual models|language-models|"
    r"transformer models|artificial networks|deep nets|machines)"
)

# Something other than a model is the subject: positive controls, simulations, and brains as models.
NOT_A_MODEL = (
    r"(?:planted|implanted|simulated|synthetic|oracle) (?:models?|features?|signals?|layers?|effects?|networks?)|"
    r"implant\w*|positive controls?|brain-as-model|oracle|planted|simulat\w+|simulations?|word onsets?|"
    r"envelopes?|assay|brain-brain|brain-to-brain|subject-to-subject|"
    r"run-to-run|other subjects|pairs of subjects"
)
