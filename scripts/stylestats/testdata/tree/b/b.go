package b

type Store struct{}

func Close() {}
