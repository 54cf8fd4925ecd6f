// Package iptables stands in for that of sigs.k8s.io/iptables-wrappers on a machine that has no
// iptables: the kubelet goes on without, and kube-proxy serves by nftables.
package iptables

import (
	"bytes"
	"context"
	"errors"
	"time"

	"k8s.io/utils/set"
)

type (
	Chain        string
	Mode         string
	Protocol     string
	RulePosition string
	Table        string
)

const (
	Append  RulePosition = "-A"
	Prepend RulePosition = "-I"

	DetectHostMode   Mode = "host"
	UseInstalledMode Mode = "installed"

	ProtocolIPv4 Protocol = "IPv4"
	ProtocolIPv6 Protocol = "IPv6"

	TableFilter Table = "filter"
	TableMangle Table = "mangle"
	TableNAT    Table = "nat"

	ChainForward     Chain = "FORWARD"
	ChainInput       Chain = "INPUT"
	ChainOutput      Chain = "OUTPUT"
	ChainPostrouting Chain = "POSTROUTING"
	ChainPrerouting  Chain = "PREROUTING"
)

type Interface interface {
	EnsureChain(ctx context.Context, table Table, chain Chain) (bool, error)
	FlushChain(ctx context.Context, table Table, chain Chain) error
	DeleteChain(ctx context.Context, table Table, chain Chain) error
	EnsureRule(ctx context.Context, position RulePosition, table Table, chain Chain, args ...string) (bool, error)
	DeleteRule(ctx context.Context, table Table, chain Chain, args ...string) error
	IsIPv6() bool
	Protocol() Protocol
	SaveInto(ctx context.Context, table Table, buffer *bytes.Buffer) error
	Restore(ctx context.Context, data []byte) error
	Monitor(ctx context.Context, canary Chain, tables []Table, reload func(), interval time.Duration)
}

type ParseError interface {
	error
	Line() int
}

type LineData struct {
	Line int
	Data string
}

func New(context.Context, Protocol, Mode) (Interface, error) {
	return nil, errors.New("built without iptables")
}

func NewBestEffort(context.Context, Mode) map[Protocol]Interface { return nil }

func ExtractLines([]byte, int, int) []LineData { return nil }

func GetChainsFromTable([]byte) set.Set[Chain] { return nil }

func MakeChainLine(Chain) string { return "" }

func IsNotFoundError(error) bool { return false }
