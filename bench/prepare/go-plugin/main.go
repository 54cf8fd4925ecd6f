// The other side of the measurement: a DRA plugin on upstream's own helper, and the caller that
// plays the kubelet for both plugins.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{"serve": serve, "call": call}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go-plugin serve|call FLAGS")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
