package main

type showCmd struct{}

func (*showCmd) Run(streams) error { return nil }
