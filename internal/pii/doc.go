// Package pii finds personal data in what tools answer, and puts tokens in its
// place. It is pure: no vault, no I/O, no clock. See docs/PERSONAL-DATA.md.
package pii
