//go:build !linux

package main

func visitor() {}
