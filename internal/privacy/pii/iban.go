package pii

// ibanLengths lists two-letter country codes, each followed by the length of the country's IBANs. It covers the SWIFT
// registry and some countries that use the format without being registered.
const ibanLengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28" +
	"HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24" +
	"RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30" +
	"AO25BF28BJ28CF27CG27CI28CM27CV25DZ26GA27GQ27GW25IR26KM27MA28MG27ML28MZ25NE28SN28TD27TG28"

// ibanLength returns the length of a country's IBANs, or 0 if the letters are not a known country.
func ibanLength(a, b byte) int {
	for i := 0; i < len(ibanLengths); i += 4 {
		if ibanLengths[i] == a && ibanLengths[i+1] == b {
			return int(ibanLengths[i+2]-'0')*10 + int(ibanLengths[i+3]-'0')
		}
	}
	return 0
}
