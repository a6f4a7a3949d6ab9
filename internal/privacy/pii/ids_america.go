package pii

import "bytes"

// americanRules returns the rules for personal numbers in the Americas, from Canada to Chile.
func americanRules() []idRule {
	return []idRule{
		{"us-ssn", SSN, "!ddd-dd-dddd ddd_dd_dddd ddddddddd ddd.dd.dddd", "ssn tax", isSSN},
		{"us-itin", SSN, "!9dd-dd-dddd 9dd_dd_dddd 9dddddddd", "ssn itin tax", isITIN},
		{"us-npi", NationalID, "dddddddddd", "npi", func(d []byte) bool {
			return (d[0] == '1' || d[0] == '2') && isLuhn(append([]byte("80840"), d...))
		}},
		{"us-mbi", NationalID, "dAxdAxdAAdd !dAxd-Axd-AAdd", "mbi insurance medicare", isMBI},
		{
			"ca-sin", NationalID, "ddd_ddd_ddd ddd-ddd-ddd ddddddddd", "sin national tax insurance",
			func(d []byte) bool { return d[0] != '8' && !isUniform(d) && isLuhn(d) },
		},
		{"br-cpf", NationalID, "!ddd.ddd.ddd-dd ddddddddddd ddd_ddd_ddd-dd", "cpf tax national", isCPF},
		{"br-cnpj", NationalID, "!dd.ddd.ddd/dddd-dd dddddddddddddd !xx.xxx.xxx/xxxx-dd xxxxxxxxxxxxdd", "cnpj tax", isCNPJ},
		{"ar-cuit", NationalID, "dd-dddddddd-d ddddddddddd", "cuit tax national", func(d []byte) bool {
			return (11-weightedSum(d, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11)%11 == lastDigit(d) &&
				bytes.Contains([]byte("20 23 24 25 26 27 30 33 34"), d[:2])
		}},
		{
			"bo-ci", NationalID,
			"dddddddd-AA-xx dddddddd-AA-x dddddddd-AA ddddddd-AA-xx ddddddd-AA-x ddddddd-AA ddddddddAA ddddddddAAx dddddddAAxx dddddddAAx dddddddAA",
			"cedula national", ciBolivia,
		},
		{"ar-dni", NationalID, "dd.ddd.ddd dddddddd", "dni national", hasDifferentDigits},
		{"cl-rut", NationalID, "!dd.ddd.ddd-x !d.ddd.ddd-x dddddddd-x ddddddd-x ddddddddx dddddddx", "rut tax national", isRUT},
		{"mx-curp", NationalID, "!AAAAddddddAAAAAAxd", "curp national", isCURP},
		{"mx-rfc", NationalID, "AAAAddddddxxx AAAA_dddddd_xxx AAAA-dddddd-xxx AAAAdddddd AAAA-dddddd", "rfc tax", isRFC},
		{"mx-nss", NationalID, "ddddddddddd dd-dd-dd-dddd-d", "nss insurance", isLuhn},
		{"co-nit", NationalID, "ddd.ddd.ddd-d ddddddddd-d dddddddddd-d dddddddddd ddddddddddd", "nit tax", isNIT},
		{"co-cc", NationalID, "d.ddd.ddd.ddd dd.ddd.ddd dddddddddd dddddddd", "cedula national", hasDifferentDigits},
		{"ec-ci", NationalID, "dddddddddd ddddddddd-d", "cedula national", ciEcuador},
		{"ec-ruc", NationalID, "ddddddddddddd", "ruc tax", func(d []byte) bool { return ciEcuador(d[:10]) && parseNumber(d[10:]) > 0 }},
		{"pe-dni", NationalID, "dddddddd", "dni national", hasDifferentDigits},
		{"pe-cui", NationalID, "ddddddddd dddddddd-x", "dni", func(id []byte) bool {
			c := weightedSum(id, 3, 2, 7, 6, 5, 4, 3, 2) % 11
			return "65432110987"[c] == id[8] || "KJIHGFEDCBA"[c] == id[8]
		}},
		{"pe-ce", NationalID, "ddddddddd", "extranjeria", hasDifferentDigits},
		{"cr-cpf", NationalID, "d-dddd-dddd dd-dddd-dddd ddddddddd", "cedula", func(d []byte) bool { return len(d) == 10 && d[0] == '0' || len(d) == 9 && d[0] != '0' && !isUniform(d) }},
		{"cr-dimex", NationalID, "dddddddddddd", "dimex", func(d []byte) bool { return d[0] == '1' }},
		{"do-cedula", NationalID, "ddd-ddddddd-d ddddddddddd", "cedula national", isLuhn},
		{"gt-cui", NationalID, "ddddddddddddd dddd_ddddd_dddd dddd-ddddd-dddd", "cui", func(d []byte) bool {
			region := parseNumber(d[9:11])
			return weightedSum(d, 2, 3, 4, 5, 6, 7, 8, 9)%11%10 == int(d[8]-'0') && region >= 1 && region <= 22 && parseNumber(d[11:]) >= 1
		}},
		{"py-ci", NationalID, "d.ddd.ddd", "cedula", nil},
		{"py-ruc", NationalID, "dddddd-d ddddddd-d dddddddd-d ddddddd dddddddd", "ruc", rucParaguay},
		{"sv-nit", NationalID, "dddd-dddddd-ddd-d dddddddddddddd", "nit", nitSalvador},
		{"uy-nie", NationalID, "ddddddddd", "cedula", func(d []byte) bool {
			return d[0] == '9' && (11-weightedSum(d, 5, 4, 3, 2, 9, 8, 7, 6)%11)%10 == lastDigit(d)
		}},
		{"ve-rif", NationalID, "A-dddddddd-d Addddddddd A-ddddddddd", "rif", isRIF},
		{"ca-phn", NationalID, "dddddddddd dddd_ddd_ddd", "phn insurance", func(d []byte) bool {
			return d[0] == '9' && (11-weightedSum(d[1:], 2, 4, 8, 5, 10, 9, 7, 3)%11)%11 == lastDigit(d)
		}},
		{"uy-ci", NationalID, "d.ddd.ddd-d dddddddd", "cedula national", func(d []byte) bool { return (10-weightedSum(d, 2, 9, 8, 7, 6, 3, 4)%10)%10 == lastDigit(d) }},
	}
}

// isSSN reports whether the digits can be a US Social Security number. It refuses ranges that are never assigned, and
// four invalid numbers that are well known, for example from advertisements.
func isSSN(d []byte) bool {
	area, group, serial := parseNumber(d[:3]), parseNumber(d[3:5]), parseNumber(d[5:])
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0 && !isUniform(d) &&
		!isOneOf(string(d), "078051120", "219099999", "457555462", "189092294")
}

func isITIN(d []byte) bool {
	g := parseNumber(d[3:5])
	return d[0] == '9' && (g >= 50 && g <= 65 || g >= 70 && g <= 88 || g >= 90 && g <= 92 || g >= 94)
}

func isMBI(id []byte) bool {
	if id[0] == '0' {
		return false
	}
	for _, b := range id {
		if bytes.IndexByte([]byte("SLOIBZ"), b) >= 0 {
			return false
		}
	}
	return true
}

func isCPF(d []byte) bool {
	if isUniform(d) {
		return false
	}
	a := weightedSum(d, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	b := weightedSum(d, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return a == int(d[9]-'0') && b == lastDigit(d)
}

func isCNPJ(d []byte) bool {
	check := func(s int) int {
		if s %= 11; s < 2 {
			return 0
		}
		return 11 - s
	}
	a := check(weightedSum(d, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
	b := check(weightedSum(d, 6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
	return a == int(d[12]-'0') && b == lastDigit(d) && !isUniform(d)
}

func isRUT(id []byte) bool {
	s, n := 0, len(id)-1
	for i := range n {
		if !isDigitByte(id[n-1-i]) {
			return false
		}
		s += int(id[n-1-i]-'0') * (2 + i%6)
	}
	return "0K987654321"[s%11] == id[n]
}

func isCURP(id []byte) bool {
	const letters = "0123456789ABCDEFGHIJKLMN?OPQRSTUVWXYZ"
	s := 0
	for i, b := range id[:17] {
		s += bytes.IndexByte([]byte(letters), b) * (18 - i)
	}
	return isYYMMDD(id[4:10]) && bytes.IndexByte([]byte("HMX"), id[10]) >= 0 && (10-s%10)%10 == lastDigit(id)
}

// isRFC reports whether the ID can be a person's Mexican tax number (RFC). It refuses the two generic numbers, which
// stand for the general public and for foreigners.
func isRFC(id []byte) bool {
	return isYYMMDD(id[4:10]) && !isOneOf(string(id), "XAXX010101000", "XEXX010101000")
}

func isNIT(d []byte) bool {
	weights, n, s := [...]int{3, 7, 13, 17, 19, 23, 29, 37, 41, 43}, len(d)-1, 0
	for i := range n {
		s += weights[i] * int(d[n-1-i]-'0')
	}
	return "01987654321"[s%11] == d[n] && !isUniform(d)
}

func nitSalvador(d []byte) bool {
	if d[0] != '0' && d[0] != '1' && d[0] != '9' || !isDDMMYY(d[4:10]) {
		return false
	}
	if parseNumber(d[10:13]) <= 100 {
		return weightedSum(d, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11%10 == lastDigit(d)
	}
	return (11-weightedSum(d, 2, 7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11)%10 == lastDigit(d)
}

func ciEcuador(d []byte) bool {
	province := parseNumber(d[:2])
	return (province >= 1 && province <= 24 || province == 30) && d[2] < '7' && isLuhn(d)
}

// ciBolivia validates a Bolivian identity number: seven or eight digits, the issuing department and an optional
// complement.
func ciBolivia(id []byte) bool {
	i := 7
	if isDigitByte(id[i]) {
		i++
	}
	return isOneOf(string(id[i:i+2]), "LP", "CB", "SC", "OR", "PT", "CH", "TJ", "BE", "BN", "PD", "PA")
}

func rucParaguay(d []byte) bool {
	n, s := len(d)-1, 0
	for i := range n {
		s += (i + 2) * int(d[n-1-i]-'0')
	}
	return (11-s%11)%10 == lastDigit(d) && !isUniform(d)
}

func isRIF(id []byte) bool {
	first := bytes.IndexByte([]byte("VEJPG"), id[0])
	return first >= 0 && "00987654321"[(4*(first+1)+weightedSum(id[1:], 3, 2, 7, 6, 5, 4, 3, 2))%11] == id[9]
}
