package sanitize

// ruleFamily represents a group of patterns for one way of giving instructions to a model.
type ruleFamily struct {
	id, reason string
	patterns   []string
}

// Words in the names of files and values that a tool has no reason to ask for.
var (
	secretFiles = []string{
		"@ssh", "id @rsa|ed25519|ecdsa|dsa", "@etc passwd|shadow|sudoers", "@aws credentials", "@cursor mcp",
		"@mcp json", "@claude ~1 config|json",
		"git @credentials", "@kube config", "@netrc|npmrc|pypirc|gnupg|keychain|dotenv|wallet", "bash|zsh|shell|browser @history", "@env",
	}
	secretValues = []string{
		"@environment variable*", "@private|api key*", "login|browser @cookie|cookies|password|passwords",
		"access|auth|session|bearer @token|tokens",
	}
)

// ruleFamilies lists the patterns in the syntax of TextScanner.addPattern. An honest description says what a tool
// does, in the third person or in the imperative. These patterns match sentences that give the reader orders about
// something other than the tool.
var ruleFamilies = []ruleFamily{
	{"override", "it tells the model to set its instructions aside", []string{
		"no @attention to ~5 told|instruction*|rule*|prompt*|said|guideline*",
		"@whatever|regardless ~3 system|your|developer ~2 prompt|instruction*|rule* ~1 say|says|said|state|states",
		"@treat|regard ~4 follows|following|below|text|content ~3 coming|sent|written|instructions|orders ~1 from|by ~1 user|system|developer|operator|administrator",
		"@zignoruj|ignoruj|zapomnij ~3 poprzednie|wszystkie|instrukcje|polecenia",
		"@ignore|disregard|forget|ignoring|disregarding|override|bypass ~3 previous|prior|above|earlier|preceding|foregoing|original|existing ~2 instruction*|prompt*|rule*|guideline*|directive*|command*|message*|context|constraint*|polic*|directions",
		"@ignore|disregard|forget|ignoring|disregarding ~2 all|any|every|everything ~3 instruction*|directive*|told|said",
		"@ignore|disregard|forget ~2 your|system|safety|developer|user|users ~2 instruction*|prompt*|guideline*|directive*|training|programming|restriction*|rule*|safety|request*",
		"@ignore|disregard|forget|discard everything|anything|what|all ~3 before|above|said|told|far",
		"previous|prior|above|earlier|original|your ~2 @instructions|guidelines|directives|prompt|instruction ~5 ignored|disregarded|void|obsolete|invalid|suspended|superseded|cancelled|overridden|replaced",
		"@supersede|supersedes|superseding|overrides|overriding|replaces|precedence|priority ~4 previous|prior|your|system|user|users|other|all|any|existing|earlier ~2 instruction*|prompt|guideline*|directive*|rule*|request*",
		"your|the|following new|real|actual|true|primary|only @task|goal|objective|mission|instructions|directive|directives|role|purpose is|are",
		"@ignore|disregard|forget ~1 above|foregoing ~1 and|then|instead",
		"no|not|dont|never|stop ~1 @attention|follow|following|obey|obeying|heed|heeding ~4 previous|prior|original|earlier|user|users|your|system ~1 instruction*|prompt|request*|guideline*|directive*",
		"previous|prior|above|earlier|original|your ~2 @instructions|guidelines|rules|directives|prompt|restrictions ~2 no longer apply|applies|valid|hold|count|matter",
		"new|updated|revised ~1 @instructions follow|below|apply|you|ignore",
		"you ~2 now ~1 @act|behave|operate|respond as|in|like",
		"you are @now ~1 a|an|in|no|operating|running|free|unrestricted|acting|required|under|going",
		"from @now on ~3 you|always|all|every|respond|act|answer|reply|never|your",
		"@pretend|roleplay ~2 you|to ~1 are|be|have",
		"@act|behave as ~2 if|though|a|an|my ~4 assistant|model|ai|administrator|admin|root|unrestricted|instructions",
		"enter|enable|activate|in|into|switch ~3 developer|debug|god|dan|jailbreak|unrestricted|sudo @mode",
		"@jailbreak|jailbroken ~3 mode|prompt|prompts|assistant|model|ai|yourself|now",
		"system|security|admin|developer @override ~2 engaged|active|activated|initiated|enabled|code|instructions|required|accepted|your|you|ignore",
		"you must|shall|will|should|have|need ~2 @obey|comply ~4 instruction*|directive*|order*|this|these|me|command*",
		"@ignora|olvida|ignore|ignorez|oublie|oubliez|ignoriere|ignorieren|vergiss|negeer|ignorar|esquece ~4 instrucciones|anweisungen|istruzioni|instruções|instrucoes|instructies|consignes|précédentes|precedentes|anteriores|vorherigen",
	}},
	{"conceal", "it tells the model to keep something from the person", []string{
		"not|dont|never|cannot|avoid|without ~2 @tell|inform|telling|informing ~2 user|human|person|anyone|anybody|operator|them|people",
		"not|dont|never|avoid|without ~1 @mention|mentioning|reveal|revealing|disclose|disclosing|acknowledge|discuss|expose ~6 user|human|person|anyone|anybody|operator",
		"not|dont|never|avoid|without ~1 @mention|mentioning|reveal|revealing|disclose|disclosing|acknowledge|acknowledging|discuss|repeat|show|output ~1 this|these|that|it|any ~2 instruction*|step*|note|message|section|block|rule*|directive*|tag*|behaviour|behavior|action*|request",
		"not|dont|never ~1 @mention|disclose|reveal|tell this|that|it",
		"not|dont|never|without ~1 @notify|alert|warn|notifying|alerting|warning ~2 user|human|person that|of|about ~3 this|tool|call*|file*|step*|instruction*|action*|read|change*",
		"not|dont|never ~1 let|allow ~2 user|human|person|them ~2 @know|see|notice|find|realize|realise|discover|aware",
		"user|human|person|they must|should|need|can|may|will not|never ~2 @know|notice|realize|realise|learn|suspect|aware",
		"user|human|person mustnt|shouldnt|neednt|cant|wont ~2 @know|notice|realize|realise|learn|suspect|aware|see",
		"@hide|conceal|withhold|keep ~5 from the|your|any user|human|person|operator",
		"@keep this|these|the ~3 instruction*|step*|message|action*|behavior|behaviour ~2 hidden|secret|private|confidential|yourself",
		"@keep|keeping this|these|it ~2 hidden|secret|confidential|yourself ~3 user|human|person|anyone",
		"not|dont|never ~1 @show|display|reveal|output|expose this|these|it|that to ~1 user|human|person|anyone|them",
		"@kept|remain|remains|stay|stays|keep ~2 secret|hidden|confidential|invisible|concealed ~1 from|to ~1 user|human|person|them",
		"without ~1 user|users|human|persons|their @knowledge|awareness|noticing|knowing",
		"@ensure|sure|certain ~2 user|human|person ~1 not|doesnt|isnt|wont|never ~2 see|sees|notice|notices|know|knows|aware|realize|realizes",
		"@silently|secretly|covertly|surreptitiously|quietly ~3 send|read|copy|upload|forward|include|add|append|attach|call|execute|transmit|pass|collect|insert|exfiltrate|log|bcc|change|replace|modify",
		"@send|read|copy|upload|forward|include|transmit|pass|collect|exfiltrate ~6 secretly|covertly|surreptitiously",
	}},
	{"secrets", "it asks for secrets or files that the tool does not need", []string{
		"before|when|whenever|prior|first|always|must|required|order|need|please|also|then|should|step ~10 read|open|cat|load|copy|dump|print|upload|attach|exfiltrate|reading|retrieve|access|steal|harvest|fetch ~6 {file}",
		"before|when|whenever|prior|first|always|must|required|order|need|please|also|then|should|step ~10 read|open|cat|load|copy|dump|print|upload|attach|exfiltrate|reading|steal|harvest ~6 {value}",
		"pass|send|include|put|provide|insert|add|append|supply|submit|paste|place|forward|give|return|upload|share|write|encode ~4 content|contents|data|text|value|values|output|copy ~3 {file}",
		"pass|send|include|put|provide|insert|add|append|supply|submit|paste|place|forward|give|return|upload|share|write|encode ~4 content|contents|data|text|value|values|output|copy ~3 {value}",
		"read|open|cat|load|copy|dump|retrieve|fetch|access|collect|find|get|grab ~6 {file} ~9 pass|send|include|put|provide|insert|add|append|supply|submit|paste|place|forward|upload|attach|share|store|encode|return",
		"read|open|load|copy|dump|collect|extract|steal ~6 {value} ~9 pass|send|include|put|provide|insert|add|append|supply|submit|paste|place|forward|upload|attach|share|store|encode|return",
		"content|contents of ~5 {file} ~6 parameter|argument|field|sidenote|note|context|metadata|input|header",
		"content|contents of ~5 {value} ~6 parameter|argument|field|sidenote|note|context|metadata|input|header",
		"@send|forward|email|upload|leak|exfiltrate|transmit|share|give|reveal|post ~2 me|us|your|users|the|all|any ~3 password|passwords|credential|credentials|secrets|cookies ~2 to|with|in|via|here",
		"extract|get|find|take|collect|retrieve|steal ~2 users|user|their ~1 @password|passwords|credentials|cookies|secrets ~4 pass|send|include|put|add|append",
		"you|must|first|before|requires ~6 read|collect|scan|load ~2 all|every ~2 files|file|documents ~3 @home|desktop ~1 directory|folder",
		"@exfiltrate|harvest|steal ~6 data|credentials|secrets|files|file|keys|key|tokens|token|passwords|conversation|history|information",
	}},
	{"shadowing", "it gives instructions on how to use tools of other servers", []string{
		"when|whenever|if|once|while|since ~3 tool|server ~2 @available|present|loaded|installed|enabled|connected|active ~10 must|always|never|only|change|replace|redirect|instead",
		"tool|tools ~1 from|of|on|provided|belonging ~2 other|another|different|any|all|every ~1 @server|servers|mcp|mcps|vendors|providers",
		"@modify|change|replace|redirect|rewrite|alter|substitute|swap|intercept ~4 recipient|recipients|address|destination|parameter|parameters|argument|arguments|url|amount|account|iban ~6 other|another|all|any|every|send|email|payment|transfer ~2 tool|tools|call|calls|email|emails|payments|server|servers",
		"when|whenever|before|after|if|every|each|anytime ~4 use|using|call|calling|invoke|invoking|run|running|execute|executing|uses|calls|called|invoked|used|user|send|sending ~5 tool|email|payment|message|function ~6 @instead|change|replace|redirect|modify|bcc|secretly|alter|substitute|override|rewrite ~6 recipient|address|argument|arguments|parameter|parameters|destination|<email>|<url>|result|results|output|response|account",
		"when|whenever|if|once|every ~4 tool|payment|transfer|email|function ~3 called|used|invoked|run|executed|needed ~5 @change|replace|redirect|modify|substitute|swap|rewrite|bcc ~6 recipient|address|argument|arguments|parameter|parameters|destination|result|results|output|account|amount|iban",
		"any|all|every|other|another ~2 tool|tools|server|servers ~4 @compromised|malicious|unsafe|insecure|untrusted|deprecated|broken|dangerous ~12 use|instead|ignore|never|only|must",
		"not|dont|never|stop ~2 use|call|trust|invoke|using|calling|trusting ~3 other|another ~1 @server|servers|mcp|providers",
		"when|whenever ~5 called|invoked|used|run|executed ~2 @instead|change|replace|redirect|swap ~4 recipient|address|number|account|destination|amount|argument|arguments",
		"not|dont|never|stop ~1 use|call|using|calling|invoke|trust ~2 @servers|server tool|tools|functions",
		"when|whenever|if ~2 user|anyone|somebody ~1 mentions|asks|talks|says ~6 @instead|secretly",
		"@before|after|whenever|prior ~3 calling|using|invoking|running|executing|call|use ~5 tool|tools|function|functions ~6 must|always|first|also ~3 call|use|invoke|run|send|pass ~4 this|here|it",
		"this|following|these @rule|rules|instruction|instructions|directive|directives ~3 apply|applies|affect|affects|govern|governs|holds ~3 all|every|any|other ~2 tool|tools|server|servers|calls",
		"the|other|another|using|with|about ~4 tool|function ~3 must|should|shall always|only|never|first|now|also ~3 @send|forward|redirect|call|include|use|bcc|copy|route|pass|transfer ~8 <email>|<url>|attacker|instead|this",
	}},
	{"exfiltration", "it tells the model to pass on data that it knows", []string{
		"send|include|pass|provide|put|append|add|insert|attach|forward|upload|copy|write|embed|place|supply|output|print|reveal|repeat|encode|summarize|dump ~4 full|entire|whole|complete|your|our|users|previous|current|all|the ~3 @conversation|chat|dialogue|dialog ~1 history|log|logs|transcript|so|context|verbatim|messages",
		"send|include|pass|provide|put|append|add|insert|attach|forward|upload|copy|write|embed|place|supply|encode ~3 full|entire|whole|complete @conversation",
		"send|include|pass|provide|put|append|insert|attach|forward|upload|copy|write|embed|place|supply|output|print|reveal|repeat|show|leak|disclose|dump ~3 your|full|entire|hidden|own|complete|initial|original|agents|assistants|models ~1 @system|initial|developer|hidden prompt|instruction*|message*",
		"also|always|additionally|every|all|each|any|copies|copy ~6 @send|sent|post|upload|forward|forwarded|transmit|report|email|mail|bcc|cc|copied|redirect|redirected|routed|deliver|delivered|exfiltrate|submit|ping ~8 <url>|<email>",
		"must|always|should|instead|shall ~2 be|send|go|goes|use|add|include|set ~2 @sent|forwarded|redirected|copied|routed|bcc|cc|recipient|addressed|emailed|uploaded|transferred|posted|delivered ~5 <url>|<email>",
		"must|always|instead|actually|really ~2 @send|forward|redirect|copy|route|bcc|cc|email|transfer|upload|post ~6 <email>",
		"@send|post|upload|forward|transmit|report|leak|email ~4 result|results|data|content|contents|response|responses|everything|conversation|credentials|history|secrets|output|answers|messages|files ~5 to <url>|<email> ~8 before|after|when|whenever|first|also|every|each|then|always",
		"before|after|when|whenever|every|each|once|also ~10 @send|post|upload|forward|transmit|report|leak|email ~4 result|results|data|content|contents|response|responses|everything|conversation|credentials|history|secrets|output|answers|messages|files|it|them ~5 to <url>|<email>",
		"provide|include|pass|put|send|add|append|attach|copy|write|summarize|forward ~3 users|your|our ~1 @previous|last|recent|prior|earlier|past messages|prompts|questions|conversations",
		"include|send|pass|provide|put|write|add|append ~2 @everything you know|remember|learned|learnt ~2 about",
		"all|every ~2 @data|results|outputs|output|responses ~2 previous|prior|other|earlier tool|tools",
		"call|calling|invoke|use|with ~3 full|entire|whole|complete @conversation|transcript ~1 as|so|in|first|before|history|with",
		"before|after|first|always|every ~8 with ~1 full|entire|whole|complete @conversation",
		"@copy|send|forward|bcc|cc|mail|email|report|relay ~1 every|each|all|any ~4 <email>",
		"@curl|wget ~8 <url> ~8 bash|sh|python|zsh|eval",
		"render|display|include|embed|add|insert|append ~3 @image|markdown|link|pixel ~6 <url> ~8 data|conversation|history|secret|secrets|query|encoded|context|content",
		"@sidenote ~8 pass|read|file|content|contents|otherwise|context|history|include|fill|put",
	}},
	{"consent", "it tells the model to act without the person's consent", []string{
		"not|dont|never|without ~2 ask|request|wait|seek|prompt|require|asking|waiting|seeking ~5 @permission|approval|consent|confirmation ~3 user|human|person|me",
		"not|dont|never ask|request|seek|prompt ~3 @permission|approval|consent|confirmation ~2 before|first|just|again|always|execute|proceed",
		"proceed|continue|execute|act|go ~4 without ~1 asking|requesting|seeking ~4 @permission|approval|consent|confirmation|user",
		"not|dont|never ask|wait|seek|bother ~2 user|human|person|them ~3 @permission|approval|consent|confirmation|confirm|approve",
		"user|human|person|operator ~1 has|have|already|gave|implicitly|always ~2 @approved|consented|authorized|authorised|agreed|consent|permission|preapproved|approves|consents",
		"@bypass|circumvent|evade ~3 safety|security|approval|approvals|confirmation|permission|permissions|guardrail|guardrails|filter|filters|review ~3 prompt|prompts|check|checks|always|when|mode|user|dialog|dialogs|system",
		"@automatically|always|silently approve|accept|confirm|grant ~3 permission|permissions|prompt|prompts|dialog|dialogs|confirmation|confirmations",
		"@assume|consider|treat ~4 user|human|person ~2 approved|consented|agrees|agreed|approves|consents|authorized",
	}},
	{"address", "it addresses the model secretly, or with an authority that it does not have", []string{
		"hidden|secret|confidential|private|urgent|covert|special @instruction|instructions|directive|directives|message|note|notice|orders|command ~3 for|to ~3 ai|assistant|assistants|agent|agents|llm|llms|model|models|claude|chatgpt|gpt|copilot|cursor|gemini|you",
		"@system|developer|admin|administrator|root|anthropic|openai message|instruction|instructions|directive|notice|command|orders ~1 you|ignore|must|all|every ~3 must|are|now|ignore|shall|call",
		"message|instruction|instructions|directive|order|orders|notice from|by ~3 @anthropic|openai|administrator|admin|developers|system ~4 you|ignore|must|the|all|to|always|do",
		"@begin|end system|admin|developer prompt|instructions|message",
		"attention|dear|hey|hello|hi|listen @ai|llm|claude|chatgpt|gpt|assistant|copilot|agent|model",
		"@ai|llm|llms|language|assistant|assistants ~2 reading|processing|parsing|seeing|interpreting ~2 this|these",
	}},
	{"order", "it tells the model to use the tool regardless of the task", []string{
		"you|assistant|agent|agents|model|llm|ai must|shall|should|have|always|need ~1 always|must|first|to ~1 call|use|invoke|run|execute ~1 this|it ~1 tool|function|one|first ~1 @first|before|always|automatically",
		"@always call|use|invoke|run|execute this|it ~1 tool|function ~1 first",
		"@always|must|shall ~2 call|use|invoke|run|execute|called|used|invoked ~2 this|it|first|before ~5 any|every|all|each|other ~1 other|another|tool|tools|request|requests|response|responses|answer|answers|message|messages|question|questions|conversation|conversations|turn|step|task|tasks|prompt|prompts",
		"@before|after ~3 any|every|all|each|other ~2 other|tool|tools|request|requests|response|answer|message|question|turn|task ~5 call|use|invoke|run|execute ~2 this|it",
		"@before ~1 answering|responding|replying|anything|doing ~4 call|use|invoke|run|execute ~2 this|it ~1 tool|function|one",
		"call|use|invoke|run|execute ~2 this ~1 tool|function ~4 for|in|on|at|after|before @every|each ~2 request|requests|response|responses|answer|answers|message|messages|question|questions|conversation|conversations|turn|turns|prompt|prompts",
		"@regardless|irrespective ~6 user|request|task|question|asked ~6 call|use|invoke|run|execute ~2 this",
		"call|use|invoke|run|execute ~2 this ~8 @regardless|irrespective ~6 user|request|task|question|asked",
		"always|must|never|only ~8 @instead|rather of|than ~2 other|another|any|builtin|built|native|default ~2 tool|tools|server|servers|function|functions",
	}},
}

// Ids of the rules for content that is recognised by its characters or markup instead of its words.
const (
	invisibleRule = "invisible"
	bidiRule      = "bidi"
	controlRule   = "control"
	homoglyphRule = "homoglyph"
)

var (
	hiddenTag   = TextRule{"tag", "it contains a block that pretends to be part of the model's instructions"}
	roleMark    = TextRule{"role", "it contains markers that separate the speakers of a conversation"}
	commentRule = TextRule{"comment", "it contains a comment that is not displayed with the text"}
	encodedRule = TextRule{"encoded", "it contains encoded text"}
	linkRule    = TextRule{"link", "it contains a link or an image, which is shown as text"}
	tooLong     = TextRule{"long", "it is longer than any description needs to be"}

	signRules = []TextRule{
		hiddenTag, roleMark, commentRule, encodedRule, linkRule, tooLong,
		{invisibleRule, "it contains invisible characters"},
		{bidiRule, "it contains marks that change the direction of text"},
		{controlRule, "it contains control characters or terminal sequences"},
		{homoglyphRule, "it contains words that mix similar-looking letters of several scripts"},
	}
)

// signRule returns the rule with the given id, for content that is recognised by its characters or markup.
func signRule(id string) TextRule {
	for _, r := range signRules {
		if r.ID == id {
			return r
		}
	}
	return TextRule{ID: id}
}
