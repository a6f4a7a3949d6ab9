package report

// standardControl holds one control of a compliance standard, with the functions that provide evidence for it.
type standardControl struct {
	id, name       string
	does, operator string
	evidence       []evidenceFunc
}

// standardControls holds the controls of one compliance standard. It also lists the requirements of the standard that
// Retort cannot cover.
type standardControls struct {
	title    string
	controls []standardControl
	not      []string
}

// notCovered lists what no report covers, for any standard.
var notCovered = []string{
	"Whatever does not pass through Retort: servers that a client calls directly, and people who use the same systems themselves.",
	"What the model, its provider and the client do with the data that they receive. Retort has no control after its answer is sent.",
	"What the servers behind Retort store, and who can read it there.",
	"Personal data that was not recognised; docs/PERSONAL-DATA.md has measured figures.",
	"The machine: its users, patches, disk encryption, backups and physical protection.",
	"Every process of the same user can do what Retort can do, and can read its keys.",
	"A report is evidence for an audit; it is not an audit, a certificate or legal advice.",
}

const policies = "Write down who may use which servers, and set permissionLevel, principals, allow and deny accordingly; review them."

var standards = map[ReportStandard]standardControls{
	Summary: {title: "Summary"},
	GDPR: {
		title: "GDPR",
		controls: []standardControl{
			{"Art. 5(1)(c)", "Data minimisation",
				"Programs run next to the data, and the model gets only their results. Recognised personal data is replaced by tokens before the model sees it.",
				"Choose pii.modes for your data; check whether the recognised types suffice for it. Request no more data than a task needs.",
				[]evidenceFunc{privacyEvidence, recordingEvidence}},
			{"Art. 5(1)(e)", "Storage limitation",
				"Audit log entries, files, tokens and stored results have a limited lifetime, after which they are moved or deleted.",
				"Set audit.keep, audit.archives, workspace.* and pii.expiry to the retention periods in your records of processing.",
				[]evidenceFunc{retentionEvidence, erasureEvidence}},
			{"Art. 5(1)(f), 32", "Integrity, confidentiality and security of processing",
				"Programs run in a sandbox of the operating system, without credentials and without network access. Values behind tokens and bodies of the audit log are encrypted.",
				"Protect the machine and the user's account; encrypt the disk; do not add servers that you do not trust.",
				[]evidenceFunc{sandboxEvidence, encryptionEvidence, refusalEvidence, accessEvidence}},
			{"Art. 5(2), 24", "Accountability",
				"Each step of a program is recorded, and calls that may have effects before they are sent, in a hash chain that reveals changes.",
				"Keep checkpoints on another machine (audit.checkpoint), and verify the audit log regularly.",
				[]evidenceFunc{recordingEvidence, integrityEvidence}},
			{"Art. 15", "Right of access",
				"The audit log can be searched for entries that mention a text. It does not contain the values behind tokens.",
				"Answer requests from the systems that hold the data; the audit log shows which tools were called, and when.",
				[]evidenceFunc{recordingEvidence}},
			{"Art. 17", "Right to erasure",
				"retort audit erase destroys the keys of a person's values and of all recorded bodies that mention the person, including those in archives.",
				"Erase the data also in the systems behind Retort, in files that programs wrote, and in what models and clients store.",
				[]evidenceFunc{erasureEvidence, integrityEvidence}},
			{"Art. 25", "Data protection by design and by default",
				"Tokens, the sandbox, approval of irreversible calls, blocking of changed tool definitions and the audit log are on unless a setting turns them off.",
				"Review each setting that was made less strict.", []evidenceFunc{privacyEvidence, approvalEvidence, changeEvidence}},
			{"Art. 30", "Records of processing activities",
				"The audit log shows who used which tools, how often, and which categories of data were found and disclosed.",
				"Keep the record of processing activities: purposes, recipients, periods, transfers.", []evidenceFunc{recordingEvidence, privacyEvidence}},
			{"Art. 33, 34", "Notification of a breach",
				"Refused calls, anomalies, disclosures of values, and findings of the verification show what may have happened, and when.",
				"Decide whether it is a breach, and notify within 72 hours. Define who is alerted.",
				[]evidenceFunc{anomalyEvidence, refusalEvidence, privacyEvidence, integrityEvidence}},
			{"Art. 35", "Impact assessment",
				"Retort contributes nothing to this by itself. This report and docs/security/data-flow.md can be part of an assessment.",
				"Carry out an assessment where the processing requires one.", []evidenceFunc{recordingEvidence}},
		},
		not: []string{
			"The legal basis of the processing, information for data subjects, and consent (Art. 6, 7, 12 to 14).",
			"Rectification, restriction, portability, objection (Art. 16, 18 to 21) in the systems behind Retort.",
			"Contracts with processors, including the model's provider (Art. 28), and transfers to third countries (Art. 44 to 50).",
		},
	},
	SOC2: {
		title: "SOC 2 (Trust Services Criteria 2017)",
		controls: []standardControl{
			{"CC6.1", "Logical access",
				"One policy decides which tools are visible and may be called, by every kind of caller. Credentials of servers never reach programs.",
				policies, []evidenceFunc{accessEvidence, refusalEvidence}},
			{"CC6.2", "Registration and removal of users",
				"Principals are defined in the settings. Retort has no user directory of its own, and does not authenticate users over its local interface.",
				"Grant and remove access to the machine's account and to the servers behind Retort.", []evidenceFunc{accessEvidence}},
			{"CC6.3", "Least privilege",
				"permissionLevel, allow and deny for each server and principal, conditions on arguments, and a person's approval of irreversible calls.",
				policies, []evidenceFunc{accessEvidence, approvalEvidence}},
			{"CC6.6", "Threats from outside the boundary",
				"Programs cannot reach the network, file system or processes of the machine; data from servers is limited in size and cleaned.",
				"Run on a system where the sandbox is complete (retort doctor), and leave sandboxFallback at none.",
				[]evidenceFunc{sandboxEvidence, refusalEvidence}},
			{"CC6.7", "Transmission of information",
				"Personal values are sent only to the servers that they came from, or where a person or a setting allows it. Every disclosure of values is recorded.",
				"Use servers over TLS; review the disclosures.", []evidenceFunc{privacyEvidence, approvalEvidence}},
			{"CC6.8", "Unauthorised or malicious software",
				"Programs are checked before they run, and a tool can be called only while its definition is the trusted one.",
				"Read a changed definition before you trust it; install servers only from sources that you know.",
				[]evidenceFunc{refusalEvidence, changeEvidence}},
			{"CC7.1", "Configuration changes", "Each start compares settings, servers and version with those of the last start, and records the differences.",
				"Review the changes; keep settings under version control.", []evidenceFunc{changeEvidence}},
			{"CC7.2", "Monitoring for anomalies", "Every execution gets a risk score; detected anomalies are recorded.",
				"Export the audit log to your monitoring system (retort audit export), and act on its alerts.",
				[]evidenceFunc{anomalyEvidence, refusalEvidence, failureEvidence}},
			{
				"CC7.3", "Evaluation of security events", "Each refusal, denial and failure is recorded with its cause.",
				"Evaluate these entries, and document the result.",
				[]evidenceFunc{refusalEvidence, failureEvidence, anomalyEvidence},
			},
			{"CC7.4, CC7.5", "Response to incidents", "All entries of an execution can be read together. A setting can deny tools; an engine can be stopped.",
				"Have an incident response plan, and rehearse it.", []evidenceFunc{anomalyEvidence}},
			{
				"CC8.1", "Change management",
				"Changed tool definitions are blocked until a person trusts them; changes of skills, settings and trust are recorded.",
				"Approve changes of settings in your own change process.", []evidenceFunc{changeEvidence, approvalEvidence},
			},
			{"C1.1, C1.2", "Confidential information: protection and disposal", "Values and bodies are encrypted; erasure destroys their keys; entries and files have a limited lifetime.",
				"Classify your data, and set retention periods and pii.modes accordingly.",
				[]evidenceFunc{privacyEvidence, erasureEvidence, retentionEvidence, encryptionEvidence}},
			{"PI1.4, PI1.5", "Processing integrity: outputs and records", "The audit log is a hash chain with authentication codes and checkpoints; it records each execution once from start to end.",
				"Verify it regularly against checkpoints that are stored elsewhere.", []evidenceFunc{integrityEvidence, recordingEvidence}},
		},
		not: []string{
			"The control environment, communication, risk assessment and monitoring of controls by the organisation (CC1 to CC5, CC9).",
			"Physical access (CC6.4) and disposal of media (CC6.5).",
			"Availability (A1): capacity, backup and recovery of the machine. Privacy notices and consent (P1 to P3).",
			"Training and background checks of people.",
		},
	},
	HIPAA: {
		title: "HIPAA Security Rule",
		controls: []standardControl{
			{
				"164.308(a)(1)(ii)(D)", "Information system activity review",
				"The audit log can be searched, exported and summarised in reports.", "Review it regularly, and document the reviews.",
				[]evidenceFunc{recordingEvidence, anomalyEvidence},
			},
			{
				"164.312(a)(1)", "Access control",
				"One policy decides which tools are visible, who may call them, and with which arguments.", policies,
				[]evidenceFunc{accessEvidence, refusalEvidence},
			},
			{"164.312(a)(2)(i)", "Unique user identification", "An entry names the principal if the caller has one, otherwise the user of the operating system.",
				"Give each person a separate account and data directory.", []evidenceFunc{accessEvidence}},
			{
				"164.312(a)(2)(ii)", "Emergency access procedure",
				"Nothing: Retort stores no patient records that would have to be reachable without it.",
				"Access the systems behind Retort directly.", nil,
			},
			{"164.312(a)(2)(iv)", "Encryption and decryption", "Values behind tokens and bodies of the audit log are encrypted. Files and state that programs write are not.",
				"Encrypt the disk.", []evidenceFunc{encryptionEvidence}},
			{
				"164.312(b)", "Audit controls",
				"Each step of a program is recorded, and calls that may have effects before they are sent.",
				"Leave auditLogging on; export the audit log.", []evidenceFunc{recordingEvidence, retentionEvidence},
			},
			{
				"164.312(c)(1)", "Integrity",
				"The audit log is a hash chain with authentication codes and signed checkpoints, which reveal changes.",
				"Verify it regularly; store checkpoints elsewhere.", []evidenceFunc{integrityEvidence},
			},
			{"164.312(d)", "Person or entity authentication", "A person approves in the client that asked, in a terminal, or through a signed webhook. Every process of the same user counts as that user on the local interface.",
				"Authenticate the users of the machine.", []evidenceFunc{approvalEvidence, loginEvidence}},
			{"164.312(e)(1)", "Transmission security", "Retort talks to clients and local servers through pipes on the machine. Traffic to remote servers is encrypted only if their addresses begin with https.",
				"Use https; secure the connection to the model's provider.", []evidenceFunc{privacyEvidence}},
			{
				"164.316(b)(2)(i)", "Retention for six years", "Entries are kept for the time set by audit.keep and audit.archives.",
				"Set both so that they add up to six years, or export the audit log to a system that keeps it that long.",
				[]evidenceFunc{sixYearEvidence, retentionEvidence},
			},
		},
		not: []string{
			"Business associate agreements, above all with the model's provider.",
			"Administrative safeguards (164.308) except for the activity review: risk analysis, workforce, training, contingency plans.",
			"Physical safeguards (164.310).",
			"The Privacy Rule and the Breach Notification Rule. Retort does not claim to recognise all identifiers of 164.514(b)(2).",
		},
	},
}
