package metrics

func gauge(name, help string) Family   { return Family{Name: name, Help: help, Kind: Gauge} }
func counter(name, help string) Family { return Family{Name: name, Help: help, Kind: Counter} }

// Of topics, with a label topic, and without it of all together (BrokerTopicMetrics). All records, whole batches
// and requests are those of this broker.
var (
	MessagesIn      = counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended by clients.")
	BytesIn         = counter("kafka_server_brokertopicmetrics_bytesin_total", "Bytes of batches appended by clients.")
	BytesOut        = counter("kafka_server_brokertopicmetrics_bytesout_total", "Bytes of batches read for consumers, what a quota then withheld included.")
	BytesRejected   = counter("kafka_server_brokertopicmetrics_bytesrejected_total", "Bytes of appends refused because a batch was larger than max.message.bytes.")
	ReplicationIn   = counter("kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes fetched from leaders. Kafka has no value per topic.")
	ReplicationOut  = counter("kafka_server_brokertopicmetrics_replicationbytesout_total", "Bytes read by followers. Kafka has no value per topic.")
	ProduceRequests = counter("kafka_server_brokertopicmetrics_totalproducerequests_total", "Appends asked for, one for each partition that a request names.")
	FetchRequests   = counter("kafka_server_brokertopicmetrics_totalfetchrequests_total", "Reads asked for, one for each partition that a request or its session names.")
	FailedProduces  = counter("kafka_server_brokertopicmetrics_failedproducerequests_total", "Appends that failed, errors left aside that belong to a cluster's ordinary life.")
	FailedFetches   = counter("kafka_server_brokertopicmetrics_failedfetchrequests_total", "Reads that failed, errors left aside that belong to a cluster's ordinary life.")
)

// Of replicas here (ReplicaManager).
var (
	LeaderCount       = gauge("kafka_server_replicamanager_leadercount", "Partitions that this broker leads.")
	PartitionCount    = gauge("kafka_server_replicamanager_partitioncount", "Replicas on this broker, offline ones included.")
	UnderReplicated   = gauge("kafka_server_replicamanager_underreplicatedpartitions", "Partitions led here whose in-sync set is smaller than their replicas.")
	UnderMinISR       = gauge("kafka_server_replicamanager_underminisrpartitioncount", "Partitions led here whose in-sync set is smaller than min.insync.replicas.")
	AtMinISR          = gauge("kafka_server_replicamanager_atminisrpartitioncount", "Partitions led here whose in-sync set has just min.insync.replicas members.")
	OfflineReplicas   = gauge("kafka_server_replicamanager_offlinereplicacount", "Replicas in failed log directories.")
	Reassigning       = gauge("kafka_server_replicamanager_reassigningpartitions", "Partitions led here whose replicas are being moved.")
	ISRShrinks        = counter("kafka_server_replicamanager_isrshrinks_total", "In-sync sets that became smaller.")
	ISRExpands        = counter("kafka_server_replicamanager_isrexpands_total", "In-sync sets that became larger.")
	FailedISRUpdates  = counter("kafka_server_replicamanager_failedisrupdates_total", "Changes of in-sync sets that were refused or had no certain answer.")
	MaxLag            = gauge("kafka_server_replicafetchermanager_maxlag", "Records that the follower here that is furthest behind its leader's high watermark lacks.")
	FailedPartitions  = gauge("kafka_server_replicafetchermanager_failedpartitionscount", "Partitions whose fetching was given up until the controller orders it again.")
	PurgatorySize     = gauge("kafka_server_delayedoperationpurgatory_purgatorysize", "Requests that wait: fetches for records, produces for followers.")
	FetchSessions     = gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions (KIP-227).")
	SessionPartitions = gauge("kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions in fetch sessions.")
)

// Of single partitions, with labels topic and partition.
var (
	LogSize                  = gauge("kafka_log_log_size", "Bytes in the log's segments.")
	LogEndOffset             = gauge("kafka_log_log_logendoffset", "Offset that the next record will get.")
	LogStartOffset           = gauge("kafka_log_log_logstartoffset", "First offset that can be read.")
	LogSegments              = gauge("kafka_log_log_numlogsegments", "Segments of the log.")
	PartitionUnderReplicated = gauge("kafka_cluster_partition_underreplicated", "1 if the partition is led here and its in-sync set is smaller than its replicas.")
	PartitionUnderMinISR     = gauge("kafka_cluster_partition_underminisr", "1 if the partition is led here and its in-sync set is smaller than min.insync.replicas.")
	PartitionAtMinISR        = gauge("kafka_cluster_partition_atminisr", "1 if the partition is led here and its in-sync set has just min.insync.replicas members.")
	PartitionReplicas        = gauge("kafka_cluster_partition_replicascount", "Replicas of the partition if it is led here, else 0.")
	PartitionInSync          = gauge("kafka_cluster_partition_insyncreplicascount", "Members of the in-sync set if the partition is led here, else 0.")
	StableOffsetLag          = gauge("kafka_cluster_partition_laststableoffsetlag", "Records between the last stable offset and the high watermark.")
)

// Of log directories and their care.
var (
	OfflineDirectories   = gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.")
	DirectoryOffline     = gauge("kafka_log_logmanager_logdirectoryoffline", "1 if the log directory failed.")
	UncleanablePartition = gauge("kafka_log_logcleanermanager_uncleanable_partitions_count", "Partitions whose compaction failed.")
	Cleanings            = counter("barnabas_log_cleaner_cleanings_total", "Compactions of a log that came to their end.")
	CleanerBytesRead     = counter("barnabas_log_cleaner_read_bytes_total", "Bytes that compaction read.")
	CleanerBytesWritten  = counter("barnabas_log_cleaner_written_bytes_total", "Bytes that compaction wrote.")
)

// Of requests, with labels request and version.
var (
	RequestsTotal    = counter("kafka_network_requestmetrics_requests_total", "Requests answered.")
	RequestTime      = gauge("kafka_network_requestmetrics_totaltimems", "Milliseconds from the arrival of a request until its answer was given to the connection, over about the last five minutes.")
	RequestTimeCount = counter("kafka_network_requestmetrics_totaltimems_count", "Requests that were timed.")
	RequestTimeSum   = counter("kafka_network_requestmetrics_totaltimems_sum", "Milliseconds that they took together.")
	Connections      = gauge("kafka_server_socket_server_metrics_connection_count", "Open connections of clients and brokers.")
)

// Of new connections, over the windows of quotas, with a label listener; the rate also with a label ip, of addresses that have a limit.
var (
	AcceptRate         = gauge("kafka_server_socket_server_metrics_connection_accept_rate", "New connections per second.")
	BrokerAcceptRate   = gauge("kafka_server_socket_server_metrics_broker_connection_accept_rate", "New connections per second on all listeners, that between brokers left aside. It has no label.")
	AcceptThrottle     = gauge("kafka_server_socket_server_metrics_connection_accept_throttle_time", "Milliseconds that new connections waited for a limit of the listener or the broker, on average of those that waited in about the last minute.")
	AcceptThrottleOfIP = gauge("kafka_server_socket_server_metrics_ip_connection_accept_throttle_time", "Milliseconds after which connections were closed because their address opened them too fast, on average of about the last minute.")
)

// Of clients that have a quota, with labels resource and, as far as the quota is theirs, user and clientId. The exempt time has
// none of them; the exporter's example does not name it.
var (
	QuotaByteRate     = gauge("kafka_server_quota_byte_rate", "Bytes per second over the quota's window; resource is Produce or Fetch.")
	QuotaRequestTime  = gauge("kafka_server_quota_request_time", "Percent of a goroutine's time that requests take, over the quota's window; resource is Request.")
	QuotaMutationRate = gauge("kafka_server_quota_mutation_rate", "Partitions created and deleted per second, over about the last minute; resource is ControllerMutation.")
	QuotaTokens       = gauge("kafka_server_quota_tokens", "Partitions that may be created or deleted now; below zero the client is refused. resource is ControllerMutation.")
	QuotaThrottleTime = gauge("kafka_server_quota_throttle_time", "Milliseconds that clients were told to pause, on average of the pauses of about the last minute.")
	ExemptRequestTime = gauge("kafka_server_request_exempt_request_time", "Percent of a goroutine's time that requests between brokers take, while there is a quota of requests.")
)

// Of the broker in its cluster.
var (
	BrokerState     = gauge("kafka_server_kafkaserver_brokerstate", "1 while it starts, 3 while it runs, 6 while it hands over its leaderships.")
	ZKDisconnects   = counter("kafka_server_sessionexpirelistener_zookeeperdisconnects_total", "Times that the connection to ZooKeeper was lost.")
	ZKConnects      = counter("kafka_server_sessionexpirelistener_zookeepersyncconnects_total", "Times that a connection to ZooKeeper was made.")
	ZKExpires       = counter("kafka_server_sessionexpirelistener_zookeeperexpires_total", "Sessions with ZooKeeper that expired.")
	ZKAuthFailures  = counter("kafka_server_sessionexpirelistener_zookeeperauthfailures_total", "Times that ZooKeeper refused the credentials.")
	Groups          = gauge("kafka_coordinator_group_groupmetadatamanager_numgroups", "Consumer groups coordinated here.")
	GroupsEmpty     = gauge("kafka_coordinator_group_groupmetadatamanager_numgroupsempty", "Groups without members.")
	GroupsPreparing = gauge("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", "Groups that wait for their members to join.")
	GroupsCompletes = gauge("kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", "Groups that wait for their leader's assignment.")
	GroupsStable    = gauge("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", "Groups whose members have their partitions.")
	GroupsDead      = gauge("kafka_coordinator_group_groupmetadatamanager_numgroupsdead", "Groups that are about to be removed.")
)

// Of the controller; zero on every broker but the one that is it.
var (
	ActiveController    = gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 on the broker that is the controller.")
	OfflinePartitions   = gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader.")
	PreferredImbalance  = gauge("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that are not led by their first replica.")
	GlobalTopics        = gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
	GlobalPartitions    = gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
	ActiveBrokers       = gauge("kafka_controller_kafkacontroller_activebrokercount", "Brokers that are registered.")
	TopicsToDelete      = gauge("kafka_controller_kafkacontroller_topicstodeletecount", "Topics that wait for their deletion.")
	TopicsHalted        = gauge("kafka_controller_kafkacontroller_topicsineligibletodeletecount", "Of those, the ones that cannot be deleted now.")
	ReplicasToDelete    = gauge("kafka_controller_kafkacontroller_replicastodeletecount", "Replicas that wait for their deletion.")
	ReplicasHalted      = gauge("kafka_controller_kafkacontroller_replicasineligibletodeletecount", "Of those, the ones that cannot be deleted now.")
	ControllerQueue     = gauge("kafka_controller_controllereventmanager_eventqueuesize", "Events that the controller has not handled yet.")
	ControllerBusyTotal = counter("barnabas_controller_busy_seconds_total", "Time that the controller spent handling events.")
)
