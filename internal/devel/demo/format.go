package demo

import (
	"errors"
	"strings"
	"time"

	"retort/internal/base/jsonschema"
)

// inputFormats returns the functions that check the formats in input schemas, such as date. It has no function for
// idn-email, because the tools themselves decide which addresses are valid.
func inputFormats() jsonschema.FormatCheckers {
	return jsonschema.FormatCheckers{"date": isDate, "date-time": isDateTime, "hostname": isHostname}
}

func isDate(s string) error {
	_, err := time.Parse(time.DateOnly, s)
	return err
}

func isDateTime(s string) error {
	if len(s) < len("2006-01-02T15:04:05Z") {
		return errors.New("less than 20 characters long")
	}
	_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	return err
}

func isHostname(s string) error {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return errors.New("more than 253 characters long")
	}
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	for label := range strings.SplitSeq(s, ".") {
		switch {
		case label == "" || len(label) > 63:
			return errors.New("a label must be 1 to 63 characters long")
		case label[0] == '-' || label[len(label)-1] == '-':
			return errors.New("a label starts or ends with a hyphen")
		case strings.Trim(label, allowed) != "":
			return errors.New("a label may have letters, digits and hyphens")
		}
	}
	return nil
}
