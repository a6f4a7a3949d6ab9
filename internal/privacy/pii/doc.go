// Package pii finds personal data in the results of tools and replaces it with tokens such as [EMAIL_1]. It stores no
// values, does no I/O and reads no clock. A caller that stores values supplies a TokenMinter.
//
// A Scanner reads a text once with hand-written matchers. Words and punctuation select the validators to run. A plain
// number counts as personal only if it has a valid checksum or a context word nearby. ReplaceValues parses JSON as
// bytes. It understands keys in a dozen languages and treats all values with the same path as one column. Names that
// it has seen under such keys are found again in free text.
//
// # Contract of ReplaceValues
//
//   - Bytes outside findings stay as they are, including the order of keys, long
//     integers, white space and escapes. Valid JSON stays valid.
//   - A finding is replaced with its whole spelling, such as \u0040, %40 or &#64;.
//     FoundValue.Text holds the decoded text, FoundValue.Raw the spelling. If Raw
//     is put back, the result equals the input byte for byte. If Text is put back,
//     the result is JSON of equal value, unless the value had percent or HTML
//     escapes.
//   - A JSON number becomes a string with a token, and FoundValue.Number is set.
//     The caller removes the quotes to restore the number; in JSON inside a string
//     they are escaped. A number becomes a token only if its key identifies the
//     type, or if it matches the pattern of a custom type. A document that is a
//     single number is treated as text.
//   - Personal keys, as in a map by e-mail address, are replaced too.
//   - JSON inside strings is parsed, up to four levels deep. CSV and Markdown
//     tables, and arrays of arrays with a header, are treated as columns.
//   - A truncated document is parsed as far as it is JSON, and the rest is scanned
//     as text, so that nothing is missed.
//   - Text in the form of a token is passed to TokenMinter.Foreign, never to Mint.
//   - Time is linear in the input. Memory is at most about five times the input.
package pii
