-- The table that flights-rows writes. NA in the source is NULL here.
create table if not exists flights (
    year           smallint    not null,
    month          smallint    not null check (month between 1 and 12),
    day            smallint    not null check (day between 1 and 31),
    dep_time       smallint,
    sched_dep_time smallint    not null,
    dep_delay      smallint,
    arr_time       smallint,
    sched_arr_time smallint    not null,
    arr_delay      smallint,
    carrier        text        not null,
    flight         integer     not null,
    tailnum        text,
    origin         text        not null,
    dest           text        not null,
    air_time       smallint,
    distance       integer     not null,
    hour           smallint    not null,
    minute         smallint    not null,
    time_hour      timestamptz not null,
    primary key (time_hour, carrier, flight, origin)
);
