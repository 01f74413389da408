"""Words by which a text hands a statement to somebody else, or speaks of a wording.

See ``scope`` for how far each reaches.
"""

from __future__ import annotations

# Somebody else says so.
PEOPLE = (
    r"(?:supporters|friends|believers|investigators|authors?|colleagues?|reviewers?|referees?|fans|"
    r"followers|philosophers?|linguists?|"
    r"engineers|compan(?:y|ies)|industry|startups?|vendors?|bloggers?|the public|laymen|students|editors?|"
    r"press office|researchers?|"
    r"scientists|neuroscientists|psychologists|experts|pioneers|optimists|pessimists|defenders|adherents|"
    r"writers|proponents|advocates|"
    r"thinkers|evangelists|boosters|columnists|pundits|books|novelists|economists|critics|commentators|"
    r"journalists|enthusiasts|"
    r"departments|theorists|scholars|textbooks|newspapers|magazines|headlines|memes?|interviews?|he|she|citedauthor)"
)
# What may stand before people who are the subject of a clause.
DETERMINER = (
    r"(?:the|a|an|many|some|most|several|other|these|those|one|few|certain|early|leading|science|press|"
    r"marketing|their|its|of|our|for|"
    r"recent|previous|earlier|prior|second|every|popular|modern|contemporary|[\w-]+(?:al|ic|ive|ing|ous|ed))"
)
OTHERS = (
    PEOPLE,
    r"(?:a|one|another) (?:[\w-]+ ){0,3}?(?:paper|study|article|report|review|book|team|group|reviewer|"
    r"magazine|newspaper|commentary|editorial|essay|preprint|blog|author|textbook|lecture|talk|chapter|poster|thesis|"
    r"journalist|critic|colleague|commentator|referee|keynote|tweet|podcast guest)",
    r"(?:prevailing|dominant|standard|usual|widespread|received) (?:\w+ )?(?:narrative|view|account|opinion|"
    r"wisdom|story|reading|belief)",
    r"(?:that|his|her|their|another) (?:\w+ )?(?:study|paper|work|report|group|team|lab)|(?:these|those|"
    r"the) (?:same |original )?authors|citedauthor|(?:previous|prior|earlier|past|recent|other|some|several|"
    r"many|certain|influential|popular|"
    r"early|most) (?:\w+ )?(?:work|works|studies|papers?|authors?|"
    r"researchers?|reports?|articles?|accounts?|scholars?|scientists|theorists|groups?|teams?|people|"
    r"commentators?|reviews?|literature|press|media|essays?|voices|textbooks?|commentar\w+|editorials?|preprints?|"
    r"laborator\w+|labs|colleagues|writers|philosophers|linguists|neuroscientists|psychologists|engineers)",
    r"(?:the |their |other )?(?:authors|commentators|critics|proponents|advocates|enthusiasts|opponents|"
    r"sceptics|skeptics|journalists|reviewers|pundits|scholars|theorists|"
    r"literature|press|media|field|(?<!our )headlines?|newspapers?|popular \w+|textbooks?|received (?:opinion|view|"
    r"wisdom)|conventional wisdom|common view|"
    r"press release|blog posts?|marketing|opinion|observers)",
    r"(?:his|her|their) (?:\w+ )?(?:abstract|paper|study|report|title|conclusion|claim|article|book|review|"
    r"view|words|data|account)",
)
REPORTING = (
    r"infer\w*|feels?|felt|answer\w*|cite[sd]?|like to|consider\w*|judg\w+|dream\w*|imagin\w*|convinced|"
    r"endors\w+|subscrib\w+|prais\w+|"
    r"tells?|told|teach(?:es)?|means?|meant|(?:is|was|were|has been) that|"
    r"(?:argu|claim|conclud|stat|assert|declar|interpret|propos|report|maintain|contend|believ|insist|announc|"
    r"alleg|describ|equat|advanc|advocat|"
    r"postulat|posit|writ|wrote|hail|portray|tout|champion|popularis|populariz|hypothesi|suggest|assum|regard|"
    r"characteri|promot|object|complain|warn|disput|speak|spoke|talk|picture|present|treat|proclaim|"
    r"celebrat|embrac|defend|read)\w*|"
    r"holds?|held|says?|said|saying|sees?|saw|takes?|took|calls?|called|thinks?|thought|points? out|pointed "
    r"out|puts? it|has it|have it|had it|goes|shown|show|shows|showed|found|finds?|demonstrated?"
)
PASSIVE_REPORT = (
    r"(?:has|have|had) (?:\w+ )?been (?:\w+ )?(?:argued|claimed|equated|interpreted|called|described|proposed|"
    r"said|taken|suggested|asserted|concluded|hailed|read|cited|portrayed|"
    r"characteri[sz]ed|reported|advanced|presented|touted|assumed|held|seen|hypothesi[sz]ed|stated|declared|treated)",
    r"(?:is|are|was|were) (?:often|sometimes|frequently|commonly|widely|usually|routinely|typically|generally|"
    r"occasionally|regularly|repeatedly) (?:\w+ )?(?:argued|claimed|equated|interpreted|called|described|said|"
    r"taken|assumed|held|read|cited|portrayed|believed|reported|asserted|presented|seen|treated|thought|"
    r"supposed|inferred)",
    r"as (?:stated|put|held|proposed|maintained|advocated|described) by",
    r"(?:on|under|in) (?:the|this|that|their|his|her|such an?|an?) (?:[\w-]+ )?(?:account|view|reading|"
    r"picture|interpretation|"
    r"story|opinion|eyes) (?:of (?:[^ ]+ ){1,4})?,|goes back to|go back to|date[sd]? back|(?:put|set) "
    r"forward by|due to citedauthor",
    r"(?:for|among|to) (?:the )?(?:proponents|advocates|enthusiasts|critics|believers|optimists|many|some|"
    r"others|them|defenders)\b",
    r"(?:was|were|is|are|been) (?:\w+ )?(?:made|advanced|defended|proposed|voiced|put forward|endorsed|held|"
    r"promoted|championed) by "
    r"(?:others|some|several|many|citedauthor|the |its |a )|not ours|(?:is|are|was|were) (?:\w+ )?(?:called|"
    r"described|referred to|known|"
    r"termed|dubbed|billed|advertised|sold|marketed|hailed|touted|styled) as",
    r"in (?:earlier|previous|prior|past|recent|other) (?:work|studies|papers|reports|analyses|experiments|"
    r"publications) ,",
    r"from the (?:standpoint|perspective|point of view|viewpoint|vantage point) of|(?:so|as) the "
    r"(?:argument|story|saying) goes|the argument (?:goes|runs)|"
    r"legend has it|abounds? (?:with|in)|(?:has|have) been likened|(?:has|have) come to (?:think|believe|see|regard)",
    r"in (?:that|this|the) (?:tradition|literature|field|line of work|school|camp|genre)|(?:common|popular|"
    r"usual|frequent|standard|"
    r"typical) (?:interpretation|reading|explanation|inference|argument|conclusion|response|narrative)",
    r"(?:to|in) (?:their|his|her|some|many) (?:minds?|eyes|opinion|words|view) ,|in the (?:press|media|"
    r"literature|field|newspapers|popular \w+) ,|commonplace|truism|clich\w+|(?:common|popular|widespread|"
    r"prevalent|fashionable|familiar) (?:view|belief|assumption|idea|"
    r"claim|notion|slogan|misconception)|would have (?:called|said|denied|argued|agreed)",
    r"(?:according to|in the words of|to quote|quoting|as claimed by|as argued by|on the view of|in the view of)",
    r"(?:some|many|most|others|they|he|she|one|some readers) (?:have |has |had |would |will |also |even |"
    r"may |might )*(?:argu|"
    r"describ|call|portray|present|take|took|see|saw|view|regard|report|wr[io]t|claim|believ|conclud|hold|"
    r"held|assert|maintain|contend|propos|insist)\w*",
    r"(?:is|was|are|were) (?:said|alleged|rumou?red|reputed|purported|supposed) to|allegedly|supposedly|"
    r"purportedly|reportedly",
)
# Verbs that only people (and what they publish) do: with such a verb before "that", somebody speaks.
PERSON_VERBS = (
    r"(?:states?|stated|claims?|claimed|argues?|argued|asserts?|asserted|maintains?|maintained|contends?|"
    r"contended|believes?|"
    r"believed|insists?|insisted|declares?|declared|alleges?|alleged|proposes?|proposed|writes?|wrote|"
    r"written|says?|said|"
    r"announces?|announced|proclaims?|proclaimed|concluded|thinks?|thought|posits?|posited|speculates?|"
    r"opines?|objects?|holds?|"
    r"held|complains?|boasts?|jokes?|assures?|suggested|remarks?|remarked|conjectures?|conjectured|"
    r"hypothesi[sz]ed) (?:[^ ;:?,]+ ly )?that",
    r"(?:(?:is|are|was|were) (?:\w+ )?(?:convinced|persuaded|adamant)|of the opinion|takes? the view|took "
    r"the view|makes? the case|"
    r"felt|feels?|notes?|noted|observes|reads?|often reads|hears?|heard|points? out|pointed out|reminds? us|"
    r"warns?|warned|answers?|answered|teach(?:es)?|taught|fears?|hopes?|promises?|infers?|like to say|love "
    r"to say) that",
    r"(?:regards?|regarded|views?|viewed|describes?|described|hails?|hailed|touts?|touted|portrays?|"
    r"portrayed|depicts?|depicted|casts?|"
    r"conceives? of|thinks? of|speaks? of|spoke of|refers? to|referred to) (?:[^ ;:?]+ ){1,6}?as",
    r"(?:is|are|was|were|been) (?:\w+ )?(?:claimed|argued|alleged|held|believed|thought|said|supposed|"
    r"considered|reported) to",
    r"(?:titled|entitled|subtitled|captioned|nicknamed|christened|dubbed)",
    r"(?:puts?|phrased|expressed) it(?: ,)?|is said to|(?:is|was|been|be) (?:often |sometimes |now |"
    r"frequently )?(?:said|claimed|argued|"
    r"believed|alleged|rumou?red|asserted|held|maintained) (?:[^ ;:?]+ ){0,5}?that",
)
# Evidence, which can be said to argue, and what a text says of itself.
NO_PERSON = (
    r"data|results?|findings?|evidence|scores?|analys[ie]s|we|our|i|this|these|here|correlations?|can|must|"
    r"should|experiments?|"
    r"profiles?|gains?|therefore|thus|hence|be"
)
# We say so: a report with this before it is our own.
OWN = (
    r"we|our|ours|i|my|here|this (?:study|paper|work|analysis|result)|"
    r"these (?:results|findings|data)|present (?:study|work|results)"
)

# Names of a wording: a sentence with one of these and a quotation is about words.
WORDING = (
    r"(?:slogan|phrase|sentence|statement|wording|headline|term|expression|label|claim|quote|quotation|title|formula|"
    r"formulation|word|assertion|motto|caption|tagline|catchphrase|announcement|talk|mention|speaking|writing|saying|"
    r"calling|dictum|maxim|notion|line|remark)s?|confus\w+|conflat\w+|rejects?|forbids?|flags?|forbidden|disallowed"
)
