package core

import "strings"

// maxPathBytes keeps paths below what the store takes as a key (32 KiB). ZooKeeper's own bound is that of the request.
const maxPathBytes = 32000

// validPath tells whether a node may have this path, by ZooKeeper's rules: absolute, no empty, "." or ".." names, no control
// characters, nothing outside of the basic multilingual plane, no private use or specials.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if !strings.HasPrefix(path, "/") || len(path) > maxPathBytes {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return false
		}
	}
	return true
}

// creatable is the looser rule for the path of a create before a sequence number is added: "/a/" may become "/a/0000000000".
func creatable(path string) bool {
	return strings.Contains(path, "/") && !strings.ContainsRune(path, 0)
}

// deletable excludes the nodes that belong to the server.
func deletable(path string) bool {
	switch path {
	case rootPath, systemPath, quotaPath, configPath:
		return false
	}
	return creatable(path)
}
