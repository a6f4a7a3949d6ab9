package pii

import "bytes"

// europeanRules returns the rules for personal numbers in Europe. They follow the descriptions of the authorities or,
// for numbers without a public description, the OECD's pages on tax numbers.
func europeanRules() []idRule { return append(westEuropeanRules(), eastEuropeanRules()...) }

func westEuropeanRules() []idRule {
	return []idRule{
		{"gb-nhs", NationalID, "ddd_ddd_dddd ddd-ddd-dddd dddddddddd", "nhs national", isNHS},
		{"gb-nino", NationalID, "!AAddddddA !AA_dd_dd_dd_A AA-dd-dd-dd-A !AA_dddddd_A", "nino national tax", isNINO},
		{"gb-nino-short", NationalID, "AAdddddd", "nino", isNINO},
		{"gb-utr", NationalID, "dddddddddd ddddd_ddddd", "utr tax", isUTR},
		{"ie-pps", NationalID, "dddddddA dddddddAA", "pps national tax", isPPS},
		{"de-tax", NationalID, "ddddddddddd dd_ddd_ddd_ddd", "steuerid tax", steuerID},
		{
			"de-steuernummer", NationalID,
			"dd/ddd/ddddd ddd/ddd/ddddd ddd/dddd/dddd ddddd/ddddd dd_ddd_ddddd ddd_ddd_ddddd ddd/ddd/dddd_d dddddddddd ddddddddddd",
			"steuernummer", hasDifferentDigits,
		},
		{"de-id", NationalID, "xxxxxxxxx xxxxxxxxxd xxxxxxxxxdA", "ausweis", idGermany},
		{"de-insurance", NationalID, "!ddddddddAddd !dd_dddddd_A_ddd", "insurance national", rentenNumber},
		{"de-kvnr", NationalID, "Addddddddd", "kvnr insurance", isKVNR},
		{"de-lanr", NationalID, "ddddddddd", "lanr", func(d []byte) bool {
			return (10-weightedSum(d, 4, 9, 4, 9, 4, 9)%10)%10 == int(d[6]-'0') && !isUniform(d[:6])
		}},
		{"fr-nir", NationalID, "!ddddddddddddddd !d_dd_dd_dd_ddd_ddd_dd !d_dd_dd_dx_ddd_ddd_dd !ddddddxdddddddd", "nir national insurance", isNIR},
		{"fr-nif", NationalID, "ddddddddddddd dd_dd_ddd_ddd_ddd", "tax national", func(d []byte) bool {
			return d[0] <= '3' && !isUniform(d) && parseNumber(d[:10])%511 == parseNumber(d[10:])
		}},
		{"es-nif", NationalID, "!ddddddddA dddddddd-A !dd.ddd.ddd-A", "dni national tax", isNIF},
		{"es-nie", NationalID, "!AdddddddA !A-ddddddd-A !Addddddd-A A-dddddddA", "dni national tax", isNIE},
		{"es-nif-klm", NationalID, "AdddddddA A-ddddddd-A", "dni", func(id []byte) bool {
			return id[0] >= 'K' && id[0] <= 'M' && nifLetters[parseNumber(id[1:8])%23] == id[8]
		}},
		{"es-naf", NationalID, "dddddddddddd dd-dddddddddd dd/dddddddd/dd dd_dddddddd_dd", "insurance", func(d []byte) bool { return parseNumber(d[:10])%97 == parseNumber(d[10:]) && !isUniform(d) }},
		{"pt-nif", NationalID, "ddddddddd ddd_ddd_ddd", "nif tax national", nifPortugal},
		{"pt-cc", NationalID, "dddddddddAAd dddddddd_d_AAd", "national cartao", isLuhn36},
		{"it-cf", NationalID, "!AAAAAAxxAxxAxxxA AAA_AAA_xxAxx_AxxxA", "cf tax national", codiceFiscale},
		{"it-id", NationalID, "AAdddddAA", "national", nil},
		{"mt-id", NationalID, "dddddddA", "national", func(id []byte) bool { return bytes.IndexByte([]byte("MGAPLHBZ"), id[7]) >= 0 }},
		{"pl-pesel", NationalID, "ddddddddddd", "pesel national", isPESEL},
		{"pl-nip", NationalID, "dddddddddd ddd-ddd-dd-dd ddd-dd-dd-ddd", "nip tax", isNIP},
		{"nl-bsn", NationalID, "ddddddddd dddd.dd.ddd dddd_dd_ddd", "bsn national tax", isBSN},
		{"nl-bsn-short", NationalID, "dddddddd", "bsn", func(d []byte) bool { return isBSN(append([]byte("0"), d...)) }},
		{"nl-onderwijs", NationalID, "ddddddddd dddd.dd.ddd", "onderwijs", func(d []byte) bool {
			return d[0] == '1' && d[1] == '0' && (weightedSum(d, 9, 8, 7, 6, 5, 4, 3, 2)-lastDigit(d))%11 == 5
		}},
		{"be-rn", NationalID, "!dd.dd.dd-ddd.dd !dd.dd.dd-ddd_dd ddddddddddd dd.dd.dd-ddd-dd dd_dd_dd-ddd.dd", "rijksregister national", isRijksregister},
		{"ch-ahv", NationalID, "!756.dddd.dddd.dd !756dddddddddd", "ahv national insurance", func(d []byte) bool { return bytes.HasPrefix(d, []byte("756")) && isEAN13(d) }},
		{"at-sv", NationalID, "dddddddddd dddd_dddddd dddd-dddddd", "svnr insurance national", isSVNR},
		{"fi-hetu", NationalID, "!dddddd-dddx !dddddd+dddx !ddddddAdddx", "hetu national", isHETU},
		{"se-pnr", NationalID, "dddddd-dddd dddddd+dddd dddddddd-dddd dddddddddddd dddddddddd", "personnummer national", isPersonnummer},
		{"no-fnr", NationalID, "dddddd_ddddd ddddddddddd", "fodselsnummer national", isFodselsnummer},
		{"dk-cpr", NationalID, "dddddd-dddd dddddddddd", "cpr national", func(d []byte) bool { return isDDMMYY(d) }},
		{"is-kt", NationalID, "dddddd-dddd dddddddddd", "kennitala national", isKennitala},
		{"cz-rc", NationalID, "dddddd/dddd dddddddddd", "rodne national", rodneCislo},
		{"cz-rc-short", NationalID, "dddddd/ddd ddddddddd", "rodne", func(d []byte) bool { return isDate(parseNumber(d[2:4])%50%20, parseNumber(d[4:6])) && !isUniform(d) }},
		{"ro-cnp", NationalID, "ddddddddddddd", "cnp national", isCNP},
		{"bg-egn", NationalID, "dddddddddd dddddd_ddd_d", "egn national", isEGN},
		{"bg-lnch", NationalID, "dddddddddd dddd_ddd_ddd", "lnch", func(d []byte) bool { return weightedSum(d, 21, 19, 17, 13, 11, 9, 7, 3, 1)%10 == lastDigit(d) }},
		{"hu-tax", NationalID, "dddddddddd", "adoazonosito tax national", func(d []byte) bool {
			return d[0] == '8' && weightedSum(d, 1, 2, 3, 4, 5, 6, 7, 8, 9)%11 == lastDigit(d)
		}},
	}
}

func eastEuropeanRules() []idRule {
	return []idRule{
		{
			"hu-taj", NationalID, "ddddddddd ddd_ddd_ddd ddd-ddd-ddd", "taj insurance national",
			func(d []byte) bool { return weightedSum(d, 3, 7, 3, 7, 3, 7, 3, 7)%10 == lastDigit(d) },
		},
		{"baltic", NationalID, "ddddddddddd", "isikukood national", isIsikukood},
		{"lv-pk", NationalID, "dddddd-ddddd", "isikukood national", func(d []byte) bool { return d[0] == '3' && d[1] == '2' || isDDMMYY(d) }},
		{"lv-pk-compact", NationalID, "ddddddddddd", "isikukood", func(d []byte) bool {
			return d[0] == '3' && d[1] == '2' || isDDMMYY(d) && (1+weightedSum(d, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9))%11%10 == lastDigit(d)
		}},
		{"gr-amka", NationalID, "ddddddddddd", "amka national insurance", func(d []byte) bool { return isDDMMYY(d) && isLuhn(d) }},
		{
			"gr-afm", NationalID, "ddddddddd", "afm tax",
			func(d []byte) bool { return weightedSum(d, 256, 128, 64, 32, 16, 8, 4, 2)%11%10 == lastDigit(d) },
		},
		{"gr-afm-short", NationalID, "dddddddd", "afm", func(d []byte) bool {
			return weightedSum(d, 128, 64, 32, 16, 8, 4, 2)%11%10 == lastDigit(d) && !isUniform(d)
		}},
		{"by-unp", NationalID, "ddddddddd AAddddddd", "unp", isUNP},
		{"al-nipt", NationalID, "AddddddddA", "nipt", func(id []byte) bool {
			return id[0] <= 'M' && isDate((parseNumber(id[2:4])+11)%12+1, parseNumber(id[4:6]))
		}},
	}
}

// balkanRules returns the rules for the Balkans, Turkey, Russia and Ukraine.
func balkanRules() []idRule {
	return []idRule{
		{"hr-oib", NationalID, "ddddddddddd", "oib tax national", isMod1110},
		{"si-emso", NationalID, "ddddddddddddd", "emso national", isEMSO},
		{"tr-tckn", NationalID, "ddddddddddd", "tckn national", isTCKN},
		{"ru-inn", NationalID, "dddddddddddd", "inn tax", isINN},
		{"ru-snils", NationalID, "!ddd-ddd-ddd_dd ddddddddddd ddd-ddd-ddd-dd", "snils insurance", isSNILS},
		{"ua-rnokpp", NationalID, "dddddddddd", "rnokpp tax", func(d []byte) bool {
			s := weightedSum(d, 1, 5, 7, 9, 4, 6, 10, 5, 7) - 2*int(d[0]-'0')
			return (s%11+11)%11%10 == lastDigit(d)
		}},
	}
}

func isNHS(d []byte) bool {
	c := 11 - weightedSum(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return c%11 == lastDigit(d) && c != 10 && !isUniform(d)
}

func isNINO(id []byte) bool {
	if bytes.IndexByte([]byte("DFIQUV"), id[0]) >= 0 || bytes.IndexByte([]byte("DFIOQUV"), id[1]) >= 0 || len(id) > 8 && id[8] > 'D' {
		return false
	}
	switch string(id[:2]) {
	case "BG", "GB", "KN", "NK", "NT", "TN", "ZZ":
		return false
	}
	return !isUniform(id[2:8])
}

func isUTR(d []byte) bool {
	c := "21987654321"[weightedSum(d[1:], 6, 7, 8, 9, 10, 5, 4, 3, 2)%11]
	return c == d[0]
}

func isPPS(id []byte) bool {
	s := weightedSum(id, 8, 7, 6, 5, 4, 3, 2)
	if len(id) == 9 && id[8] != 'W' && id[8] != 'T' && id[8] != 'X' {
		s += 9 * int(id[8]-'A'+1)
	}
	return "WABCDEFGHIJKLMNOPQRSTUV"[s%23] == id[7]
}

// steuerID validates a German tax number: exactly one of its first ten digits occurs twice or three times, and the
// last digit is a checksum.
func steuerID(d []byte) bool {
	var count [10]int
	for _, b := range d[:10] {
		count[b-'0']++
	}
	repeated, most := 0, 0
	for _, n := range count {
		if n > 1 {
			repeated++
		}
		most = max(most, n)
	}
	return d[0] != '0' && repeated == 1 && most <= 3 && isMod1110(d)
}

func rentenNumber(id []byte) bool {
	if !isDate(parseNumber(id[4:6]), max(1, parseNumber(id[2:4])%50)) {
		return false
	}
	d := append(append([]byte{}, id[:8]...), '0'+(id[8]-'A'+1)/10, '0'+(id[8]-'A'+1)%10)
	d = append(d, id[9:]...)
	s := 0
	for i, w := range []int{2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1} {
		v := w * int(d[i]-'0')
		s += v/10 + v%10
	}
	return s%10 == lastDigit(id)
}

func isNIR(id []byte) bool {
	m := parseNumber(id[3:5])
	if id[0] != '1' && id[0] != '2' || m == 0 || m > 12 && m < 20 || m > 42 && m < 50 {
		return false
	}
	d, less := append([]byte{}, id...), 0
	switch d[6] { // Corsica
	case 'A':
		less, d[6] = 1000000, '0'
	case 'B':
		less, d[6] = 2000000, '0'
	}
	for _, b := range d {
		if !isDigitByte(b) {
			return false
		}
	}
	return 97-(parseNumber(d[:13])-less)%97 == parseNumber(d[13:])
}

const nifLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

// isNIF validates a Spanish tax number. It refuses an ID whose eight digits could be a date.
func isNIF(id []byte) bool {
	return nifLetters[parseNumber(id[:8])%23] == id[8] && !isYYYYMMDD(id[:8]) && !isUniform(id[:8])
}

func isNIE(id []byte) bool {
	return id[0] >= 'X' && id[0] <= 'Z' && nifLetters[(int(id[0]-'X')*10000000+parseNumber(id[1:8]))%23] == id[8]
}

func nifPortugal(d []byte) bool {
	return bytes.IndexByte([]byte("1235689"), d[0]) >= 0 && (11-weightedSum(d, 9, 8, 7, 6, 5, 4, 3, 2)%11)%11%10 == lastDigit(d)
}

func codiceFiscale(id []byte) bool {
	odd := [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	s := 0
	for i, b := range id[:15] {
		v := int(b - 'A')
		if isDigitByte(b) {
			v = int(b - '0')
		}
		if i%2 == 0 {
			v = odd[v]
		}
		s += v
	}
	return bytes.IndexByte([]byte("ABCDEHLMPRST"), id[8]) >= 0 && int(id[15]-'A') == s%26
}

func isPESEL(d []byte) bool {
	return (weightedSum(d, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)+lastDigit(d))%10 == 0 && isDate(parseNumber(d[2:4])%20, parseNumber(d[4:6]))
}

func isNIP(d []byte) bool {
	return weightedSum(d, 6, 5, 7, 2, 3, 4, 5, 6, 7)%11 == lastDigit(d) && !isUniform(d)
}

func isBSN(d []byte) bool {
	return (weightedSum(d, 9, 8, 7, 6, 5, 4, 3, 2)-lastDigit(d))%11 == 0 && !isUniform(d)
}

func isRijksregister(d []byte) bool {
	c, n := parseNumber(d[9:]), parseNumber(d[:9])
	return isDate(max(1, parseNumber(d[2:4])%20), max(1, parseNumber(d[4:6]))) && (97-n%97 == c || 97-(2000000000+n)%97 == c)
}

func isEAN13(d []byte) bool {
	return (weightedSum(d, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3)+lastDigit(d))%10 == 0
}

func isSVNR(d []byte) bool {
	return d[0] != '0' && weightedSum(d, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)%11 == int(d[3]-'0') &&
		isDate(max(1, parseNumber(d[6:8])%12), parseNumber(d[4:6]))
}

func isHETU(id []byte) bool {
	rest := id[6:]
	if len(id) == 11 { // the letter of the century
		if bytes.IndexByte([]byte("ABCDEFUVWXY"), id[6]) < 0 {
			return false
		}
		rest = id[7:]
	}
	for _, b := range rest[:3] {
		if !isDigitByte(b) {
			return false
		}
	}
	if id[0] == '2' && id[1] == '9' && id[3] == '2' && id[2] == '0' && parseNumber(id[4:6])%4 != 0 { // no leap year
		return false
	}
	return isDDMMYY(id) && "0123456789ABCDEFHJKLMNPRSTUVWXY"[(parseNumber(id[:6])*1000+parseNumber(rest[:3]))%31] == rest[3]
}

func isPersonnummer(d []byte) bool {
	if len(d) == 12 {
		if d[0] != '1' && d[0] != '2' {
			return false
		}
		d = d[2:]
	}
	day := parseNumber(d[4:6])
	return isDate(parseNumber(d[2:4]), max(day%60, 1)) && isLuhn(d)
}

// isFodselsnummer validates a Norwegian identity number. Its first check digit has four possible values, because
// Norway extended the range of numbers.
func isFodselsnummer(d []byte) bool {
	day, month := parseNumber(d[:2]), parseNumber(d[2:4])
	if y, n := parseNumber(d[4:6]), parseNumber(
		d[6:9],
	); n >= 500 && n < 900 && y >= 40 && y < 54 || n >= 750 && n < 900 && y >= 54 { // of no century
		return false
	}
	return isDate(month%40, day%40) && (weightedSum(d, 3, 7, 6, 1, 8, 9, 4, 5, 2, 1))%11 <= 3 &&
		weightedSum(d, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func isKennitala(d []byte) bool {
	return isDate(parseNumber(d[2:4]), max(1, parseNumber(d[:2])%40)) && weightedSum(d, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func rodneCislo(d []byte) bool {
	return isDate(parseNumber(d[2:4])%50%20, parseNumber(d[4:6])) &&
		(parseNumber(d)%11 == 0 || parseNumber(d[:9])%11 == 10 && lastDigit(d) == 0)
}

func isCNP(d []byte) bool {
	return d[0] != '0' && isYYMMDD(d[1:]) && weightedSum(d, 2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)%11%10 == lastDigit(d)
}

func isEGN(d []byte) bool {
	return isDate(parseNumber(d[2:4])%20, parseNumber(d[4:6])) && weightedSum(d, 2, 4, 8, 5, 10, 9, 7, 3, 6)%11%10 == lastDigit(d)
}

func isIsikukood(d []byte) bool {
	c := weightedSum(d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1) % 11
	if c == 10 {
		c = weightedSum(d, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3) % 11 % 10
	}
	return d[0] >= '1' && d[0] <= '8' && isYYMMDD(d[1:]) && c == lastDigit(d)
}

func isEMSO(d []byte) bool {
	return isDate(parseNumber(d[2:4]), parseNumber(d[:2])) && (11-weightedSum(d, 7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11)%11 == lastDigit(d)
}

func isTCKN(d []byte) bool {
	odd, even := weightedSum(d, 1, 0, 1, 0, 1, 0, 1, 0, 1), weightedSum(d, 0, 1, 0, 1, 0, 1, 0, 1)
	return d[0] != '0' && (odd*7-even+1000)%10 == int(d[9]-'0') && (odd+even+int(d[9]-'0'))%10 == lastDigit(d)
}

func isINN(d []byte) bool {
	return weightedSum(d, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == int(d[10]-'0') &&
		weightedSum(d, 3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == lastDigit(d)
}

func isSNILS(d []byte) bool {
	return weightedSum(d, 9, 8, 7, 6, 5, 4, 3, 2, 1)%101%100 == parseNumber(d[9:]) && !isUniform(d[:9])
}

// idGermany validates the serial number of a German identity card, with or without its check digit.
func idGermany(id []byte) bool {
	digits, _ := countCharacters(id)
	if len(id) == 9 {
		return digits >= 4 && digits < 9
	}
	return digits >= 5 && travelDigit(id)
}

// isLuhn36 verifies a Luhn checksum over letters and digits, with A as 10.
func isLuhn36(id []byte) bool {
	s := 0
	for i, b := range id {
		v := bytes.IndexByte([]byte(base36Digits), b)
		if (len(id)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		s += v
	}
	return s%10 == 0
}

func isUNP(id []byte) bool {
	d := append([]byte{}, id...)
	if !isDigitByte(d[1]) {
		v := bytes.IndexByte([]byte("ABCEHKMOPT"), d[1])
		if v < 0 {
			return false
		}
		d[1] = '0' + byte(v)
	}
	s := 29 * bytes.IndexByte([]byte(base36Digits), d[0])
	return (s+weightedSum(d[1:], 23, 19, 17, 13, 7, 5, 3))%11 == lastDigit(d) && !isUniform(id)
}

// isKVNR validates a German health insurance number. For the checksum, its letter counts as two digits.
func isKVNR(id []byte) bool {
	letter := id[0] - 'A' + 1
	d := append([]byte{'0' + letter/10, '0' + letter%10}, id[1:9]...)
	s := 0
	for i, b := range d {
		v := int(b-'0') * (1 + i%2)
		s += v/10 + v%10
	}
	return s%10 == lastDigit(id)
}

// drivingBritain validates a British driving licence number: five letters of the name, the date of birth in shuffled
// order, then initials.
func drivingBritain(id []byte) bool {
	name := bytes.TrimRight(id[:5], "9")
	for _, b := range name {
		if isDigitByte(b) {
			return false
		}
	}
	return len(name) > 0 && isDate(parseNumber(id[6:8])%50, parseNumber(id[8:10])) && !isDigitByte(id[11]) && isDigitByte(id[13])
}
