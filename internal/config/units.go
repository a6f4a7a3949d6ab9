package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate allows Count events in the time Per. The zero Rate means that the settings state no rate.
type Rate struct {
	Count int
	Per   time.Duration
}

func (r Rate) String() string {
	for _, u := range perUnits {
		if u.size == float64(r.Per) {
			return fmt.Sprintf("%d/%s", r.Count, u.names[0])
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Per)
}

// measureUnit describes a unit of measure with all its spellings, in lower case.
type measureUnit struct {
	size  float64
	names []string
}

// sizeUnits lists the units of size. They are powers of 1024, with and without the letter i, as in the memory limits
// of containers: the default of 512MB equals a container limit of 512m.
var sizeUnits = []measureUnit{
	{1, []string{"b", "byte", "bytes"}},
	{1 << 10, []string{"kb", "kib", "k"}},
	{1 << 20, []string{"mb", "mib", "m"}},
	{1 << 30, []string{"gb", "gib", "g"}},
	{1 << 40, []string{"tb", "tib", "t"}},
}

var timeUnits = []measureUnit{
	{float64(time.Millisecond), []string{"ms", "millisecond", "milliseconds"}},
	{float64(time.Second), []string{"s", "sec", "second", "seconds"}},
	{float64(time.Minute), []string{"m", "min", "minute", "minutes"}},
	{float64(time.Hour), []string{"h", "hour", "hours"}},
	{float64(24 * time.Hour), []string{"d", "day", "days"}},
}

var perUnits = []measureUnit{
	{float64(time.Second), []string{"second", "s", "sec"}},
	{float64(time.Minute), []string{"minute", "m", "min"}},
	{float64(time.Hour), []string{"hour", "h"}},
	{float64(24 * time.Hour), []string{"day", "d"}},
}

var coreUnits = []measureUnit{{1, []string{"core", "cores", "cpu", "cpus"}}}

func findUnit(units []measureUnit, name string) (float64, bool) {
	for _, u := range units {
		for _, n := range u.names {
			if strings.EqualFold(n, name) {
				return u.size, true
			}
		}
	}
	return 0, false
}

// parseQuantity parses a number at the beginning of s, and the unit after it, if there is one. It returns the number
// multiplied by the size of the unit, and the rest of s. The argument bare is the factor for a number without a unit.
func parseQuantity(s string, units []measureUnit, bare float64) (value float64, rest string, ok bool) {
	s = strings.TrimSpace(s)
	digits := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if digits < 0 {
		digits = len(s)
	}
	number, err := strconv.ParseFloat(s[:digits], 64)
	if err != nil || digits > 32 {
		return 0, "", false
	}
	s = strings.TrimSpace(s[digits:])
	letters := strings.IndexFunc(s, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
	if letters < 0 {
		letters = len(s)
	}
	size := bare
	if letters > 0 {
		if size, ok = findUnit(units, s[:letters]); !ok {
			return 0, "", false
		}
	}
	return number * size, s[letters:], size > 0
}

// toInt64 converts a quantity to an integer, and returns false if it is too large for one.
func toInt64(v float64) (int64, bool) {
	if v < 0 || v >= math.MaxInt64 {
		return 0, false
	}
	return int64(v), true
}

// parseSize parses a number of bytes: 512MB, 1GiB, 1.5g, 4096.
func parseSize(s string) (int64, bool) {
	v, rest, ok := parseQuantity(s, sizeUnits, 1)
	n, fits := toInt64(v)
	return n, ok && fits && rest == ""
}

// ParseDuration parses a duration such as 12h, 90d or 1h30m. A bare number counts milliseconds.
func ParseDuration(s string) (time.Duration, bool) { return parseDuration(s) }

// parseDuration parses a duration: 10m, 1h30m, 1.5 hours, 2d. A bare number counts milliseconds.
func parseDuration(s string) (time.Duration, bool) {
	total, rest, ok := parseQuantity(s, timeUnits, float64(time.Millisecond))
	for ok && strings.TrimSpace(rest) != "" {
		var v float64
		v, rest, ok = parseQuantity(rest, timeUnits, 0)
		total += v
	}
	if !ok {
		return 0, false
	}
	n, fits := toInt64(total)
	return time.Duration(n), fits
}

// parseCores parses a number of processors: 0.5, 1 core, 2 cores.
func parseCores(s string) (float64, bool) {
	v, rest, ok := parseQuantity(s, coreUnits, 1)
	return v, ok && rest == ""
}

// parseRate parses a rate such as 100/minute.
func parseRate(s string) (Rate, bool) {
	count, per, found := strings.Cut(s, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	size, known := findUnit(perUnits, strings.TrimSpace(per))
	return Rate{Count: n, Per: time.Duration(size)}, found && err == nil && known
}

// showSize returns the shortest exact spelling of a size.
func showSize(n int64) string {
	for i := len(sizeUnits) - 1; i > 0; i-- {
		if size := int64(sizeUnits[i].size); n >= size && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + strings.ToUpper(sizeUnits[i].names[0])
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// showDuration returns a duration in its largest whole unit.
func showDuration(d time.Duration) string {
	for i := len(timeUnits) - 1; i >= 0; i-- {
		if size := time.Duration(timeUnits[i].size); d >= size && d%size == 0 {
			return strconv.FormatInt(int64(d/size), 10) + timeUnits[i].names[0]
		}
	}
	return d.String()
}
