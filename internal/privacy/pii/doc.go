// Package pii finds personal data in what tools answer, and puts tokens in its
// place: [EMAIL_1]. It is pure: it keeps no values, does no I/O and reads no
// clock. Who keeps values gives a Vault.
//
// A Scanner looks at a text once, by hand: words and marks lead to validators,
// and nothing that is only digits is personal without a checksum or a word that
// says so. Replace walks JSON as bytes. It reads keys in a dozen languages, looks
// at columns, and finds again in free text the names that keys told.
//
// # Contract of Replace
//
//   - Bytes outside of findings are those of the input. Order of keys, long
//     integers, white space and escapes stay. Valid JSON stays valid.
//   - A finding is replaced with its whole spelling: with \u0040, %40, &#64;.
//     Value.Text is what it means, Value.Raw how it stood. Putting back Raw gives
//     the bytes of the input; putting back Text gives JSON of equal value, if the
//     value had no percent or HTML escapes.
//   - A number of JSON becomes a string with a token; Value.Number says so. The
//     inverse takes the quotes away, which have backslashes before them in JSON
//     that stands in a string. Only numbers under keys that say what they are
//     become tokens. A document that is one bare number is text.
//   - Keys that are personal, as in a map by e-mail address, are replaced too.
//   - JSON inside of strings is walked, four levels deep. CSV and Markdown tables,
//     and arrays of arrays under a header, are columns.
//   - What is cut off is no reason to find less: a document is walked as far as it
//     is JSON, and the rest scanned as text.
//   - Text in the shape of a token is given to Vault.Foreign and never to Mint.
//   - Time is linear in the input; memory some five times the input at most.
package pii
