package wire

// layouts says how the body of each request is laid out, over all versions, in the notation that parseLayouts reads:
//
//	1 2 4 8 16  a number, boolean or id of that many bytes
//	s s?        a string, a string or null         b b?  the same for bytes
//	[ … ]       an array of what is inside         [? … ]  an array or null
//	t           tagged fields, none of them known  t{0:4 | 1:s 2}  with those that are
//	x@3+ x@0-2  x is there since version 3, in versions 0 to 2
//	x?10+       x may be null since version 10
//
// Tagged fields, and lengths in their compact form, are there when the version is flexible. A test holds every
// line against what kmsg encodes.
var layouts = map[int16]string{
	0:  "s?@3+ 2 4 [s@0-12 16@13+ [4 b? t] t] t",                                                                                                                    // Produce
	1:  "4@0-14 4 4 4@3+ 1@4+ 4@7+ 4@7+ [s@0-12 16@13+ [4 4@9+ 8 4@12+ 8@5+ 4 t{0:16 | 1:8}] t] [s@7-12 16@13+ [4] t]@7+ s@11+ t{0:s? | 1:4 8 t}",                   // Fetch
	2:  "4 1@2+ [s [4 4@4+ 8 4@0-0 t] t] 4@10+ t",                                                                                                                   // ListOffsets
	3:  "[?1+ 16@10+ s?10+ t] 1@4+ 1@8-10 1@8+ t",                                                                                                                   // Metadata
	4:  "4 1@7+ 4 8@2+ 1@5+ [s@0-1 4 4 4 4 [4] 4 [4] [4]@3+ [4]@3+ 1@1+ 1@6+ t]@0-1 [s 16@5+ [s@0-1 4 4 4 4 [4] 4 [4] [4]@3+ [4]@3+ 1@1+ 1@6+ t] t]@2+ [4 s 4 t] t", // LeaderAndISR
	5:  "4 1@4+ 4 8@1+ 1@0-2 [s 4@0-0 [4]@1-2 [4 4 1 t]@3+ t] t",                                                                                                    // StopReplica
	6:  "4 1@8+ 4 8@5+ [s@0-4 4 4 4 4 [4] 4 [4] [4]@4+ t]@0-4 [s 16@7+ [s@0-4 4 4 4 4 [4] 4 [4] [4]@4+ t] t]@5+ [4 s@0-0 4@0-0 [4 s s@3+ 2 t]@1+ s?@2+ t] t",        // UpdateMetadata
	7:  "4 8@2+ t",                                                                                                                                                  // ControlledShutdown
	8:  "s 4@1+ s@1+ s?@7+ 8@2-4 [s@0-9 16@10+ [4 8 8@1-1 4@6+ s? t] t] t",                                                                                          // OffsetCommit
	9:  "s@0-7 [?2+ s [4] t]@0-7 [s s?@9+ 4@9+ [? s@8-9 16@10+ [4] t] t]@8+ 1@7+ t",                                                                                 // OffsetFetch
	10: "s@0-3 1@1+ [s]@4+ t",                                                                                                                                       // FindCoordinator
	11: "s 4 4@1+ s s?@5+ s [s b t] s?@8+ t",                                                                                                                        // JoinGroup
	12: "s 4 s s?@3+ t",                                                                                                                                             // Heartbeat
	13: "s s@0-2 [s s? s?@5+ t]@3+ t",                                                                                                                               // LeaveGroup
	14: "s 4 s s?@3+ s?@5+ s?@5+ [s b t] t",                                                                                                                         // SyncGroup
	15: "[s] 1@3+ t",                                                                                                                                                // DescribeGroups
	16: "[s]@4+ [s]@5+ t",                                                                                                                                           // ListGroups
	17: "s",                                                                                                                                                         // SASLHandshake
	18: "s@3+ s@3+ s?@5+ 4@5+ t",                                                                                                                                    // ApiVersions
	19: "[s 4 2 [4 [4] t] [s s? t] t] 4 1@1+ t",                                                                                                                     // CreateTopics
	20: "[s]@0-5 [s? 16 t]@6+ 4 t",                                                                                                                                  // DeleteTopics
	21: "[s [4 8 t] t] 4 t",                                                                                                                                         // DeleteRecords
	22: "s? 4 8@3+ 2@3+ t",                                                                                                                                          // InitProducerID
	23: "4@3+ [s [4 4@2+ 4 t] t] t",                                                                                                                                 // OffsetForLeaderEpoch
	24: "s@0-3 8@0-3 2@0-3 [s [4] t]@0-3 [s 8 2 1 [s [4] t] t]@4+ t",                                                                                                // AddPartitionsToTxn
	25: "s 8 2 s t",                                                                                                                                                 // AddOffsetsToTxn
	26: "s 8 2 1 t",                                                                                                                                                 // EndTxn
	27: "[8 2 1 [s [4] t] 4 1@2+ t] t",                                                                                                                              // WriteTxnMarkers
	28: "s s 8 2 4@3+ s@3+ s?@3+ [s@0-5 16@6+ [4 8 4@2+ s? t] t] t",                                                                                                 // TxnOffsetCommit
	29: "1 s? 1@1+ s? s? 1 1 t",                                                                                                                                     // DescribeACLs
	30: "[1 s 1@1+ s s 1 1 t] t",                                                                                                                                    // CreateACLs
	31: "[1 s? 1@1+ s? s? 1 1 t] t",                                                                                                                                 // DeleteACLs
	32: "[1 s [? s] t] 1@1+ 1@3+ t",                                                                                                                                 // DescribeConfigs
	33: "[1 s [s s? t] t] 1 t",                                                                                                                                      // AlterConfigs
	34: "[s [s [4] t] t] t",                                                                                                                                         // AlterReplicaLogDirs
	35: "[? s [4] t] t",                                                                                                                                             // DescribeLogDirs
	36: "b t",                                                                                                                                                       // SASLAuthenticate
	37: "[s 4 [? [4] t] t] 4 1 t",                                                                                                                                   // CreatePartitions
	38: "s?@3+ s?@3+ [s s t] 8 t",                                                                                                                                   // CreateDelegationToken
	39: "b 8 t",                                                                                                                                                     // RenewDelegationToken
	40: "b 8 t",                                                                                                                                                     // ExpireDelegationToken
	41: "[? s s t] t",                                                                                                                                               // DescribeDelegationToken
	42: "[s] t",                                                                                                                                                     // DeleteGroups
	43: "1@1+ [? s [4] t] 4 t",                                                                                                                                      // ElectLeaders
	44: "[1 s [s 1 s? t] t] 1 t",                                                                                                                                    // IncrementalAlterConfigs
	45: "4 1@1+ [s [4 [? 4] t] t] t",                                                                                                                                // AlterPartitionReassignments
	46: "4 [? s [4] t] t",                                                                                                                                           // ListPartitionReassignments
	47: "s [s [4]]",                                                                                                                                                 // OffsetDelete
	48: "[s 1 s? t] 1 t",                                                                                                                                            // DescribeClientQuotas
	49: "[[s s? t] [s 8 1 t] t] 1 t",                                                                                                                                // AlterClientQuotas
	50: "[? s t] t",                                                                                                                                                 // DescribeUserSCRAMCredentials
	51: "[s 1 t] [s 1 4 b b t] t",                                                                                                                                   // AlterUserSCRAMCredentials
	56: "4 8 [s@0-1 16@2+ [4 4 [4]@0-2 [4 8 t]@3+ 1@1+ 4 t] t] t",                                                                                                   // AlterPartition
	57: "4 [s 2 1@0-0 1@1+ t] 1@1+ t",                                                                                                                               // UpdateFeatures
	58: "b b? b t",                                                                                                                                                  // Envelope
	60: "1 1@1+ 1@2+ t",                                                                                                                                             // DescribeCluster
	61: "[s [4] t] t",                                                                                                                                               // DescribeProducers
	65: "[s] t",                                                                                                                                                     // DescribeTransactions
	66: "[s] [8] 8@1+ s?@2+ t",                                                                                                                                      // ListTransactions
	67: "4 8 t",                                                                                                                                                     // AllocateProducerIDs
	68: "s s 4 s? s? 4 [? s] s?@1+ s? [? 16 [4] t] t",                                                                                                               // ConsumerGroupHeartbeat
	69: "[s] 1 t",                                                                                                                                                   // ConsumerGroupDescribe
}
