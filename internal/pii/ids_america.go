package pii

import "bytes"

// america: numbers of people from Canada to Chile.
func america() []rule {
	return []rule{
		{"us-ssn", SSN, "!ddd-dd-dddd ddd_dd_dddd ddddddddd ddd.dd.dddd", "ssn tax", ssn},
		{"us-itin", SSN, "!9dd-dd-dddd 9dd_dd_dddd 9dddddddd", "ssn itin tax", itin},
		{"us-npi", NationalID, "dddddddddd", "npi", func(d []byte) bool {
			return (d[0] == '1' || d[0] == '2') && luhn(append([]byte("80840"), d...))
		}},
		{"us-mbi", NationalID, "dAxdAxdAAdd !dAxd-Axd-AAdd", "mbi insurance medicare", mbi},
		{"ca-sin", NationalID, "ddd_ddd_ddd ddd-ddd-ddd ddddddddd", "sin national tax insurance", func(d []byte) bool { return d[0] != '8' && !same(d) && luhn(d) }},
		{"br-cpf", NationalID, "!ddd.ddd.ddd-dd ddddddddddd ddd_ddd_ddd-dd", "cpf tax national", cpf},
		{"br-cnpj", NationalID, "!dd.ddd.ddd/dddd-dd dddddddddddddd", "cnpj tax", cnpj},
		{"ar-cuit", NationalID, "dd-dddddddd-d ddddddddddd", "cuit tax national", func(d []byte) bool {
			return (11-weighted(d, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11)%11 == last(d) && bytes.Contains([]byte("20 23 24 25 26 27 30 33 34"), d[:2])
		}},
		{"ar-dni", NationalID, "dd.ddd.ddd dddddddd", "dni national", nil},
		{"cl-rut", NationalID, "!dd.ddd.ddd-x !d.ddd.ddd-x dddddddd-x ddddddd-x", "rut tax national", rut},
		{"mx-curp", NationalID, "!AAAAddddddAAAAAAxd", "curp national", curp},
		{"mx-rfc", NationalID, "AAAAddddddxxx", "rfc tax", func(id []byte) bool { return yymmdd(id[4:10]) }},
		{"mx-nss", NationalID, "ddddddddddd dd-dd-dd-dddd-d", "nss insurance", luhn},
		{"co-nit", NationalID, "ddd.ddd.ddd-d ddddddddd-d", "nit tax", func(d []byte) bool {
			return "01987654321"[weighted(d, 41, 37, 29, 23, 19, 17, 13, 7, 3)%11] == d[9]
		}},
		{"co-cc", NationalID, "d.ddd.ddd.ddd dd.ddd.ddd dddddddddd dddddddd", "cedula national", nil},
		{"ec-ci", NationalID, "dddddddddd", "cedula national", func(d []byte) bool { return number(d[:2]) <= 24 && d[2] < '6' && luhn(d) }},
		{"pe-dni", NationalID, "dddddddd", "dni national", nil},
		{"uy-ci", NationalID, "d.ddd.ddd-d dddddddd", "cedula national", func(d []byte) bool { return (10-weighted(d, 2, 9, 8, 7, 6, 3, 4)%10)%10 == last(d) }},
	}
}

func ssn(d []byte) bool {
	area, group, serial := number(d[:3]), number(d[3:5]), number(d[5:])
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0 && !same(d)
}

func itin(d []byte) bool {
	g := number(d[3:5])
	return d[0] == '9' && (g >= 50 && g <= 65 || g >= 70 && g <= 88 || g >= 90 && g <= 92 || g >= 94)
}

func mbi(id []byte) bool {
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

func cpf(d []byte) bool {
	if same(d) {
		return false
	}
	a := weighted(d, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	b := weighted(d, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return a == int(d[9]-'0') && b == last(d)
}

func cnpj(d []byte) bool {
	check := func(s int) int {
		if s %= 11; s < 2 {
			return 0
		}
		return 11 - s
	}
	a := check(weighted(d, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
	b := check(weighted(d, 6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
	return a == int(d[12]-'0') && b == last(d) && !same(d)
}

func rut(id []byte) bool {
	s, n := 0, len(id)-1
	for i := range n {
		if !digit(id[n-1-i]) {
			return false
		}
		s += int(id[n-1-i]-'0') * (2 + i%6)
	}
	return "0K987654321"[s%11] == id[n]
}

func curp(id []byte) bool {
	const letters = "0123456789ABCDEFGHIJKLMN?OPQRSTUVWXYZ"
	s := 0
	for i, b := range id[:17] {
		s += bytes.IndexByte([]byte(letters), b) * (18 - i)
	}
	return yymmdd(id[4:10]) && bytes.IndexByte([]byte("HMX"), id[10]) >= 0 && (10-s%10)%10 == last(id)
}
