package pii

import "bytes"

// asianRules returns the rules for personal numbers in Asia, Africa and Oceania.
func asianRules() []idRule {
	return []idRule{
		{
			"in-aadhaar", NationalID, "!dddd_dddd_dddd dddd-dddd-dddd dddddddddddd", "aadhaar national",
			func(d []byte) bool { return d[0] >= '2' && isVerhoeff(d) && !isUniform(d) },
		},
		{"in-pan", NationalID, "AAAAAddddA", "pan tax", func(id []byte) bool { return bytes.IndexByte([]byte("ABCFGHJLPT"), id[3]) >= 0 }},
		{"in-epic", NationalID, "AAAddddddd", "epic", func(id []byte) bool { return isLuhn(id[3:]) }},
		{"in-vid", NationalID, "dddddddddddddddd dddd_dddd_dddd_dddd", "vid", func(d []byte) bool { return d[0] >= '2' && isVerhoeff(d) }},
		{"in-gstin", NationalID, "!ddAAAAAddddAxZx", "gstin tax", isGSTIN},
		{"cn-ric", NationalID, "!dddddddddddddddddx", "shenfenzheng national", ricChina},
		{"hk-hkid", NationalID, "!Adddddd(x) Addddddx !AAdddddd(x) AAddddddx", "hkid national", isHKID},
		{"tw-id", NationalID, "!Addddddddd AAdddddddd", "twid national", idTaiwan},
		{"jp-mynumber", NationalID, "dddddddddddd dddd_dddd_dddd dddd-dddd-dddd", "mynumber national", myNumber},
		{"kr-rrn", NationalID, "!dddddd-ddddddd ddddddddddddd", "rrn national", isRRN},
		{
			"kr-rrn-named", NationalID, "dddddd-ddddddd ddddddddddddd", "rrn",
			func(d []byte) bool { return isYYMMDD(d) && d[6] >= '1' && d[6] <= '8' },
		}, // since 2020 without a checksum
		{"lk-nic", NationalID, "dddddddddA dddddddddddd", "nic national", nicLanka},
		{"sg-nric", NationalID, "!AdddddddA", "nric national", isNRIC},
		{"my-nric", NationalID, "dddddd-dd-dddd dddddddddddd", "mykad national", isYYMMDD},
		{"th-id", NationalID, "!d-dddd-ddddd-dd-d ddddddddddddd d_dddd_ddddd_dd_d d-dd-d-ddd-ddddd-d", "thaiid national tax", func(d []byte) bool {
			return d[0] != '0' && (11-weightedSum(d, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11)%10 == lastDigit(d)
		}},
		{
			"id-nik", NationalID, "dddddddddddddddd", "nik national",
			func(d []byte) bool { return isDate(parseNumber(d[8:10]), max(1, parseNumber(d[6:8])%40)) },
		},
		{
			"id-npwp", NationalID, "ddddddddddddddd !dd.ddd.ddd.d-ddd.ddd", "npwp tax",
			func(d []byte) bool { return isLuhn(d[:9]) && !isUniform(d) },
		},
		{"ph-sss", NationalID, "dd-ddddddd-d", "insurance national", nil},
		{"ph-tin", NationalID, "ddd-ddd-ddd-ddd ddd-ddd-ddd dddddddddddd", "phtin", hasDifferentDigits},
		{"pk-cnic", NationalID, "!ddddd-ddddddd-d ddddddddddddd", "cnic national", func(d []byte) bool { return d[0] >= '1' && d[0] <= '7' && lastDigit(d) > 0 }},
		{"il-id", NationalID, "ddddddddd dddddddd-d", "teudat national", luhnLeft},
		{"il-id-short", NationalID, "dddddddd ddddddd-d", "teudat", luhnLeft},
		{"ae-id", NationalID, "!784-dddd-ddddddd-d 784dddddddddddd", "emirates national", isLuhn},
		{"sa-id", NationalID, "dddddddddd", "iqama national", func(d []byte) bool { return (d[0] == '1' || d[0] == '2') && isLuhn(d) }},
		{"za-id", NationalID, "ddddddddddddd dddddd_dddd_ddd", "zaid national", func(d []byte) bool { return isYYMMDD(d) && d[10] < '3' && isLuhn(d) }},
		{"au-tfn", NationalID, "ddd_ddd_ddd ddddddddd ddd-ddd-ddd", "tfn tax", func(d []byte) bool { return weightedSum(d, 1, 4, 3, 7, 5, 8, 6, 9, 10)%11 == 0 && !isUniform(d) }},
		{"au-abn", NationalID, "!dd_ddd_ddd_ddd ddddddddddd", "abn tax", isABN},
		{"au-medicare", NationalID, "dddd_ddddd_d dddddddddd dddd-ddddd-d dddd_ddddd_d/d", "medicare insurance", func(d []byte) bool {
			return d[0] >= '2' && d[0] <= '6' && weightedSum(d, 1, 3, 7, 9, 1, 3, 7, 9)%10 == int(d[8]-'0')
		}},
		{"nz-ird", NationalID, "dd-ddd-ddd ddd-ddd-ddd dddddddd ddddddddd ddddddd-d dddddddd-d", "ird tax", isIRD},
		{"ng-nin", NationalID, "ddddddddddd", "nin national", nil},
		{"ao-bi", NationalID, "dddddddddAAddd", "national", nil},
		{"gh-tin", NationalID, "Adddddddddx", "tax", tinGhana},
		{"mu-nid", NationalID, "Addddddddddddx", "nid national", nidMauritius},
		{"mz-bi", NationalID, "ddddddddddddA dddd_dddd_ddddA", "national", nil},
		{"mz-nuit", NationalID, "ddddddddd dddddddd-d", "nuit", func(d []byte) bool {
			return "01234567891"[weightedSum(d, 8, 9, 4, 5, 6, 7, 8, 9)%11] == d[8] && !isUniform(d)
		}},
		{"eg-id", NationalID, "dddddddddddddd", "national", func(d []byte) bool { return (d[0] == '2' || d[0] == '3') && isYYMMDD(d[1:]) }},
	}
}

// paperRules returns the rules for passports and driving licences. Most of their numbers have no checksum that is
// valid in every country, so a context word must precede them.
func paperRules() []idRule {
	return []idRule{
		{
			"passport", Passport,
			"ddddddddd Addddddd Adddddddd AAddddddd AAdddddd AAddddddA dddddddd ddAAddddd AAAdddddd AdAddddd AdddAdddd xxxxxxxxx",
			"passport", fourDigits,
		},
		{"passport-checked", Passport, "xxxxxxxxxd xxxxxxxxxdA", "passport", func(id []byte) bool { return fourDigits(id) && travelDigit(id) }},
		{
			"licence", Licence,
			"Addddddd Addddddddd dddddddd ddddddddd ddddddd Adddddddddddd AAAAAddddddAxxxx Addd-dddd-dddd Addd-dddd-dddd-dd xddxxdddddd AAddddddd AAdddddd AA-dd-dddddddddd dddddddddddd AdAddddd AdAdddAddA AAdddddddA dd-dd-dddddd-dd xxxxxxxxxxx",
			"licence", fourDigits,
		},
		{"gb-licence", Licence, "!Axxxxddddddxxxxx", "licence", drivingBritain},
	}
}

func fourDigits(id []byte) bool {
	n, _ := countCharacters(id)
	return n >= 4
}

const base36Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func isGSTIN(id []byte) bool {
	s := 0
	for i, b := range id[:14] {
		v := bytes.IndexByte([]byte(base36Digits), b) * (1 + i%2)
		s += v/36 + v%36
	}
	return base36Digits[(36-s%36)%36] == id[14] && parseNumber(id[:2]) <= 38
}

func ricChina(id []byte) bool {
	if !isYYYYMMDD(id[6:14]) || id[0] == '0' || id[0] > '8' {
		return false
	}
	return "10X98765432"[weightedSum(id, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)%11] == id[17]
}

func isHKID(id []byte) bool {
	s, n := 9*36, len(id)-7 // a blank where the second letter is missing
	if n == 2 {
		s = 9 * int(id[0]-'A'+10)
	}
	s += 8*int(id[n-1]-'A'+10) + weightedSum(id[n:], 7, 6, 5, 4, 3, 2)
	return "0A987654321"[s%11] == id[n+6]
}

func idTaiwan(id []byte) bool {
	v := bytes.IndexByte([]byte("ABCDEFGHJKLMNPQRSTUVXYWZIO"), id[0]) + 10
	if !isDigitByte(id[1]) { // of residents, until 2020
		w := bytes.IndexByte([]byte("ABCD"), id[1])
		return w >= 0 && (v/10+v%10*9+8*w+weightedSum(id[2:], 7, 6, 5, 4, 3, 2, 1, 1))%10 == 0
	}
	return (id[1] == '1' || id[1] == '2' || id[1] == '8' || id[1] == '9') &&
		(v/10+v%10*9+weightedSum(id[1:], 8, 7, 6, 5, 4, 3, 2, 1, 1))%10 == 0
}

func myNumber(d []byte) bool {
	r := weightedSum(d, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2) % 11
	if r <= 1 {
		return lastDigit(d) == 0
	}
	return 11-r == lastDigit(d)
}

func isRRN(d []byte) bool {
	return isYYMMDD(d) && (11-weightedSum(d, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)%11)%10 == lastDigit(d)
}

func isNRIC(id []byte) bool {
	s := weightedSum(id[1:], 2, 7, 6, 5, 4, 3, 2)
	switch id[0] {
	case 'S':
		return "JZIHGFEDCBA"[s%11] == id[8]
	case 'T':
		return "JZIHGFEDCBA"[(s+4)%11] == id[8]
	case 'F':
		return "XWUTRQPNMLK"[s%11] == id[8]
	case 'G':
		return "XWUTRQPNMLK"[(s+4)%11] == id[8]
	case 'M':
		return "XWUTRQPNJLK"[(s+3)%11] == id[8]
	}
	return false
}

// luhnLeft verifies the Luhn checksum of an ID of odd length, where doubling from the left and from the right is the
// same. It refuses one repeated digit.
func luhnLeft(d []byte) bool { return isLuhn(d) && !isUniform(d) }

func isABN(d []byte) bool {
	return (weightedSum(d, 10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)-10)%89 == 0 && d[0] != '0'
}

func isIRD(d []byte) bool {
	if len(d) == 8 {
		d = append([]byte{'0'}, d...)
	}
	if n := parseNumber(d); n < 10000000 || n > 150000000 {
		return false
	}
	c := (11 - weightedSum(d, 3, 2, 7, 6, 5, 4, 3, 2)%11) % 11
	if c == 10 {
		c = (11 - weightedSum(d, 7, 4, 3, 2, 5, 2, 7, 6)%11) % 11
	}
	return c == lastDigit(d)
}

func tinGhana(id []byte) bool {
	return id[1] == '0' && id[2] == '0' && "0123456789X"[weightedSum(id[1:], 1, 2, 3, 4, 5, 6, 7, 8, 9)%11] == id[10]
}

func nidMauritius(id []byte) bool {
	s := 14*(int(id[0]-'A')+10) + weightedSum(id[1:], 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
	return isDDMMYY(id[1:]) && base36Digits[(17-s%17)%17] == id[13]
}

// nicLanka validates a Sri Lankan identity number. The number contains the birthday as the day of the year, and
// women's numbers add 500 to it.
func nicLanka(id []byte) bool {
	day := parseNumber(id[2:5])
	if len(id) == 12 {
		if !isYear(parseNumber(id[:4])) {
			return false
		}
		day = parseNumber(id[4:7])
	} else if id[9] != 'V' && id[9] != 'X' {
		return false
	}
	day %= 500
	return day >= 1 && day <= 366
}
