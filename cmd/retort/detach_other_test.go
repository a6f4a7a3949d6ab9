//go:build !unix

package main

func detach() {}
