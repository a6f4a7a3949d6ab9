package c

type Store struct{}

func Close() {}
