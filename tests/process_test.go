package tests

const processMode = "MCPACTOR_TEST_PROCESS"

func runProcess(string) {}
